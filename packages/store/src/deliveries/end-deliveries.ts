/** Ends deliveries without an attempt, and finds the held ones that are too old. */
import { chunksOf, type EventRef, type FailureReason } from '@posthorn/core';
import { loadOthers, type UnreadableRecord } from '../decode-named.ts';
import { keepEvent } from '../events/events.ts';
import { byStatusKey, partitionPrefix } from '../keys.ts';
import type { Position } from '../lists/page.ts';
import { scanSortedSet } from '../lists/sorted-set.ts';
import { pruneIndex } from '../prune.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { keptWhileUnfinishedMs, loadDeliveries, type StoredDelivery } from './delivery-record.ts';

/**
 * The next `limit` held deliveries of a partition that were made until `beforeMs`, oldest first, from after an entry,
 * and those of them that can't be read. `next` is the entry after which the following call goes on; undefined at the
 * end. Where records are gone, removes such entries from the index: nothing else would ever end them.
 */
export async function heldBefore(
  store: Store,
  partition: number,
  beforeMs: number,
  limit: number,
  after?: Position,
): Promise<{ deliveries: StoredDelivery[]; unreadable: UnreadableRecord[]; next: Position | undefined }> {
  const prefix = partitionPrefix(store, partition);
  const key = byStatusKey(prefix, 'held');
  const found = await scanSortedSet(store, key, { order: 'oldest_first', after, count: limit, toMs: beforeMs });
  const unreadable: UnreadableRecord[] = [];
  const load = (ids: string[]) => loadDeliveries(store, ids);
  const deliveries = await loadOthers(
    load,
    found.map(({ id }) => id),
    unreadable,
  );
  if (deliveries.length + unreadable.length < found.length)
    await pruneIndex(store, prefix, key, { beforeMs, maxChunks: 1, maxKept: limit });
  return { deliveries, unreadable, next: found.length < limit ? undefined : found.at(-1) };
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
