/**
 * Notices that have not been posted yet: one stream per partition. A notice is written with its change, and removed by
 * the notifier, which goes through the partitions: its calls soon fail where a master of a Cluster does not reply.
 */
import type { Notice, NoticeType } from '@posthorn/core';
import { noticesDroppedKey, noticesKey, partitionPrefix } from './keys.ts';
import { pairs } from './lists/sorted-set.ts';
import { withCircuitBreaker } from './redis/circuit-breaker.ts';
import { runScript } from './scripts.ts';
import { allPartitions, type Store } from './store.ts';

/** A notice with its position in the stream. */
export interface WaitingNotice extends Notice {
  entryId: string;
}

/** The oldest notices of a partition: up to `limit` of all, of those after an entry, or of those up to an entry. */
export async function waitingNotices(
  store: Store,
  partition: number,
  limit: number,
  range: { after?: string | undefined; upTo?: string | undefined },
): Promise<WaitingNotice[]> {
  const prefix = partitionPrefix(store, partition);
  const start = range.after === undefined ? '-' : `(${range.after}`;
  const entries = await withCircuitBreaker(store, prefix, () =>
    store.redis.xrange(noticesKey(prefix), start, range.upTo ?? '+', 'COUNT', limit),
  );
  return entries.map(([entryId, flat]) => {
    const fields: Partial<Record<string, string>> = Object.fromEntries(pairs(flat));
    return {
      entryId,
      id: `ntc_${partition}-${fields.i ?? entryId}`,
      type: fields.k as NoticeType,
      atMs: Number(fields.at),
      subscriptionId: fields.s ?? '',
      deliveryId: fields.d ?? null,
      deliveries: fields.m === undefined ? null : Number(fields.m),
      replayId: fields.r ?? null,
      reason: fields.w || null,
      worker: fields.p ?? null,
      sinceMs: fields.b === undefined ? null : Number(fields.b),
      failures: fields.n === undefined ? null : Number(fields.n),
      pauseAfter: fields.l === undefined ? null : Number(fields.l),
    };
  });
}

/** When the notice that waits longest was made; undefined if none waits. */
export async function oldestNotice(store: Store): Promise<number | undefined> {
  const oldest = await Promise.all(allPartitions(store).map((partition) => waitingNotices(store, partition, 1, {})));
  const times = oldest.flat().map(({ atMs }) => atMs);
  return times.length === 0 ? undefined : Math.min(...times);
}

/**
 * Adds a notice of a worker's outage to the first partition. `id` identifies it: stored twice because a reply was lost,
 * it is posted twice under the same id.
 */
export async function addOutageNotice(
  store: Store,
  notice: {
    id: string;
    type: 'outage.started' | 'outage.ended';
    atMs: number;
    reason: string;
    worker: string;
    sinceMs: number;
  },
): Promise<void> {
  const { id, type, atMs, reason, worker, sinceMs } = notice;
  const fields = ['k', type, 'at', atMs, 'w', reason, 'p', worker, 'b', sinceMs, 'i', id];
  await store.redis.xadd(noticesKey(partitionPrefix(store, 0)), '*', ...fields);
}

/** Removes notices that have been posted. */
export async function removeNotices(store: Store, partition: number, entryIds: readonly string[]): Promise<void> {
  if (entryIds.length === 0) return;
  const prefix = partitionPrefix(store, partition);
  await withCircuitBreaker(store, prefix, () => store.redis.xdel(noticesKey(prefix), ...entryIds));
}

/**
 * How many notices of a partition were dropped unsent, since more than `MAX_NOTICES` waited, and are not reported yet.
 */
export async function droppedNotices(store: Store, partition: number): Promise<number> {
  const prefix = partitionPrefix(store, partition);
  return Number(await withCircuitBreaker(store, prefix, () => store.redis.get(noticesDroppedKey(prefix))));
}

/** Notes that dropped notices have been reported. */
export async function reportedDropped(store: Store, partition: number, count: number): Promise<void> {
  const prefix = partitionPrefix(store, partition);
  await withCircuitBreaker(store, prefix, () => runScript(store, 'reportedDropped', prefix, { count }));
}
