/** Ends deliveries without an attempt, and finds the held ones that are too old. */
import { chunksOf, type EventRef, type FailureReason } from '@posthorn/core';
import { keepEvent } from '../events/events.ts';
import { byStatusKey, partitionPrefix } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from './delivery-record.ts';

/** Held deliveries of a partition made before `beforeMs`, oldest first. */
export async function heldBefore(
  store: Store,
  partition: number,
  beforeMs: number,
  limit: number,
): Promise<StoredDelivery[]> {
  const key = byStatusKey(partitionPrefix(store, partition), 'held');
  return await loadExisting(store, await store.redis.zrangebyscore(key, '-inf', beforeMs, 'LIMIT', 0, limit));
}

/** Deliveries that one script ends: a few milliseconds of Redis. */
const AT_ONCE = 100;

interface DeliveriesToEnd {
  partition: number;
  deliveries: readonly { id: string; event: EventRef }[];
  reason: Extract<FailureReason, 'expired' | 'subscription_deleted' | 'erased'>;
  nowMs: number;
  onlyHeld?: boolean;
  generation?: number;
}

/**
 * Ends unfinished deliveries of one partition without an attempt; with `onlyHeld`, those that are still held; with
 * `generation`, those whose newest job has it. Returns how many it has ended. Removes the jobs of their retries. Other
 * jobs stay in the queue: a worker that takes one finds its delivery ended.
 */
export async function endDeliveries(
  store: Store,
  { partition, deliveries, reason, nowMs, onlyHeld = false, generation }: DeliveriesToEnd,
): Promise<number> {
  const expiresAtMs = nowMs + keptWhileUnfinishedMs(store);
  const prefix = partitionPrefix(store, partition);
  const values = { reason, nowMs, expiresAtMs, retentionMs: store.retentionMs, onlyHeld, generation };
  let ended = 0;
  for (const some of chunksOf(deliveries, AT_ONCE)) {
    await Promise.all(some.map(({ event }) => keepEvent(store, event, expiresAtMs)));
    ended += (await runScript(store, 'endDeliveries', prefix, { ...values, deliveries: some })).length;
  }
  return ended;
}
