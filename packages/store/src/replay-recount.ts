/** Counts the deliveries of bulk replays that workers of an earlier version have ended, which do not count. */
import * as keys from './keys.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** Deliveries looked at by one step: a few milliseconds of Redis. */
const STEP = 200;
/** Bulk replays that one run of maintenance looks at in a partition. */
const MAX_AT_ONCE = 5;

/** Some of the bulk replays of a partition whose deliveries have all been made, and that are to be looked at now. */
export async function openReplays(store: Store, partition: number, nowMs: number): Promise<string[]> {
  const key = keys.openReplaysKey(keys.partitionPrefix(store, partition));
  return await store.redis.zrangebyscore(key, '-inf', nowMs, 'LIMIT', 0, MAX_AT_ONCE);
}

/**
 * Does the next step for such a bulk replay; returns whether there is more to do at once. Forgets it once none of its deliveries waits. May be
 * repeated, by several processes at once.
 */
export async function stepRecount(store: Store, replayId: string, nowMs: number): Promise<boolean> {
  const prefix = keys.prefixOfId(store, replayId);
  const key = keys.replayKey(prefix, replayId);
  const [from, ...counts] = await store.redis.hmget(key, 'recounted', 'counted', 'delivered', 'failed', 'cancelled');
  const [counted = 0, delivered = 0, failed = 0, cancelled = 0] = counts.map(Number);
  if (counted <= delivered + failed + cancelled) {
    await store.redis.zrem(keys.openReplaysKey(prefix), replayId);
    return false;
  }
  const start = from == null ? '-' : `(${from}`;
  const entries = await store.redis.xrange(keys.replayDeliveriesKey(prefix, replayId), start, '+', 'COUNT', STEP);
  return await runScript(store, 'recountReplay', prefix, {
    id: replayId,
    from: from ?? undefined,
    to: entries.at(-1)?.[0],
    isLast: entries.length < STEP,
    nowMs,
    deliveries: entries.map(([, [, deliveryId = '']]) => ({ deliveryId })),
  });
}
