/** Counts the failed deliveries that a bulk replay covers. */
import { FAILURE_REASONS, isCovered, type ReplayFilter } from '@posthorn/core';
import { decodeKind } from '../events/event-record.ts';
import * as keys from '../keys.ts';
import { scanSortedSet } from '../lists/sorted-set.ts';
import { pruneIndex } from '../prune.ts';
import type { Store } from '../store.ts';

/** Records read at once: a few milliseconds of Redis. */
const CHUNK = 500;
/** Records that one count with a filter reads at most: about a second. */
export const MAX_COUNTED = 50_000;
/**
 * The most that one count removes from the index: 20,000 deliveries whose record has expired, about 50 ms. Held
 * deliveries that ended as expired are as old but still kept, so the search ends after 1,000 that are kept.
 */
const PRUNED = { maxChunks: 40, maxKept: 1_000 };

/**
 * What a bulk replay covers: the failed deliveries of an address that were made from `fromMs` to `toMs`, both included.
 */
export interface ReplayScope {
  subscriptionId: string;
  fromMs: number;
  toMs: number;
  filter: ReplayFilter;
}

/**
 * Counts what a bulk replay covers. First removes deliveries whose record has expired from the index, at most `PRUNED`:
 * the count without a filter includes those that are left, so it may be too high. With a filter it reads the oldest
 * `maxCounted` failed deliveries; `isComplete` is false where there are more, and the count is then too low.
 */
export async function countCovered(
  store: Store,
  { subscriptionId, fromMs, toMs, filter }: ReplayScope,
  nowMs: number,
  maxCounted = MAX_COUNTED,
): Promise<{ count: number; isComplete: boolean }> {
  const prefix = keys.prefixOfSubscription(store, subscriptionId);
  const key = keys.failedKey(prefix, subscriptionId);
  await pruneIndex(store, prefix, key, { beforeMs: nowMs - store.retentionMs, ...PRUNED });
  const hasNoFilter = Object.values(filter).every((value) => value === null);
  if (hasNoFilter) return { count: await store.redis.zcount(key, fromMs, toMs), isComplete: true };
  let count = 0;
  let after: { ms: number; id: string } | undefined;
  for (let lookedAt = 0; lookedAt < maxCounted; lookedAt += CHUNK) {
    const found = await scanSortedSet(store, key, { order: 'oldest_first', after, count: CHUNK, fromMs, toMs });
    const records = await Promise.all(
      found.map(({ id }) => store.redis.hmget(keys.deliveryKey(prefix, id), 'k', 'r', 'f')),
    );
    for (const [kind, reason, finishedAt] of records) {
      if (kind == null) continue;
      const failureReason = FAILURE_REASONS.find((each) => each === reason) ?? null;
      const failed = { eventType: decodeKind(Number(kind)).type, failureReason, finishedAtMs: Number(finishedAt) };
      if (isCovered(filter, failed)) count += 1;
    }
    if (found.length < CHUNK) return { count, isComplete: true };
    after = found.at(-1);
  }
  return { count, isComplete: false };
}
