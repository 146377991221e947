/** Maintenance of the stored data: leases, pruning, lost jobs, deleted subscriptions. The loop that calls it is the worker's. */
import { type DeliveryStatus, deliveryIdPrefix, isFinished, StorageUnavailable } from '@posthorn/core';
import { Cluster } from 'ioredis';
import { withCircuitBreaker } from './circuit-breaker.ts';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from './delivery-record.ts';
import * as keys from './keys.ts';
import type { Position } from './page.ts';
import { runScript } from './scripts.ts';
import { pairs } from './sorted-set.ts';
import type { Store } from './store.ts';

/**
 * Acquires or extends the lease for some work in a partition for `lifeMs`. Returns whether `holder` has it. Throws
 * `StorageUnavailable` soon if the master of a Cluster does not reply.
 */
export async function holdLease(
  store: Store,
  work: keys.LeasedWork,
  partition: number,
  holder: string,
  lifeMs: number,
): Promise<boolean> {
  const prefix = keys.partitionPrefix(store, partition);
  const lease = { key: keys.leaseKey(prefix, work), holder, lifeMs };
  return await withCircuitBreaker(store, prefix, () => runScript(store, 'lease', prefix, lease));
}

/** Releases a lease early, so that another process need not wait for its end. */
export async function giveUpLease(
  store: Store,
  work: keys.LeasedWork,
  partition: number,
  holder: string,
): Promise<void> {
  const prefix = keys.partitionPrefix(store, partition);
  const lease = { key: keys.leaseKey(prefix, work), holder };
  await withCircuitBreaker(store, prefix, () => runScript(store, 'giveUpLease', prefix, lease));
}

/**
 * Those of the partitions whose lease nobody has, or `holder`. One command, except in a Cluster: there it returns all,
 * since asking costs as much as trying to acquire.
 */
export async function freeLeases(
  store: Store,
  work: keys.LeasedWork,
  partitions: readonly number[],
  holder: string,
): Promise<number[]> {
  if (partitions.length < 2 || store.redis instanceof Cluster) return [...partitions];
  const holders = await store.redis.mget(
    partitions.map((number) => keys.leaseKey(keys.partitionPrefix(store, number), work)),
  );
  return partitions.filter((_, i) => holders[i] === null || holders[i] === holder);
}

interface WhatCounts {
  /** A key of the first partition. */
  keyOfAll?: string;
  /** Asked where any of the keys may exist; resolves to more than 0 if those of a partition count. Without it, all do. */
  countIn?: (prefix: string) => Promise<number>;
}

/**
 * The partitions in which any of these keys exists and counts, or all if `keyOfAll` exists. One command if there is
 * none, except in a Cluster, where each partition costs one.
 */
async function partitionsWith(
  store: Store,
  keysOf: (prefix: string) => string[],
  { keyOfAll, countIn = (prefix) => store.redis.exists(keysOf(prefix)) }: WhatCounts = {},
): Promise<ReadonlySet<number>> {
  const prefixes = keys.allPrefixes(store);
  const ofAll = keyOfAll === undefined ? [] : [keyOfAll];
  if (!(store.redis instanceof Cluster) && (await store.redis.exists([...prefixes.flatMap(keysOf), ...ofAll])) === 0)
    return new Set();
  // Where there is no reply, something may wait.
  const count = (prefix: string, read: () => Promise<number>) =>
    withCircuitBreaker(store, prefix, read).catch((error: unknown) => {
      if (!(error instanceof StorageUnavailable)) throw error;
      return 1;
    });
  const [counts, existing] = await Promise.all([
    Promise.all(prefixes.map((prefix) => count(prefix, () => countIn(prefix)))),
    ofAll.length > 0 ? count(keys.partitionPrefix(store, 0), () => store.redis.exists(ofAll)) : 0,
  ]);
  return new Set(counts.flatMap((count, partition) => (count + existing > 0 ? [partition] : [])));
}

/**
 * The partitions in which something waits for maintenance: deliveries to release, a trial to send, a bulk replay,
 * retries behind first attempts or a deleted subscription. All partitions while an erasure is open.
 */
export async function partitionsWithWork(store: Store): Promise<ReadonlySet<number>> {
  const keysOf = (prefix: string) => [
    ...keys.LANES.map((lane) => keys.laneIndexKey(prefix, lane)),
    keys.resumingKey(prefix),
    keys.activeReplaysKey(prefix),
    keys.activeBatchesKey(prefix),
    keys.queueKey(prefix, 'prioritized'),
    keys.closingKey(prefix),
  ];
  return await partitionsWith(store, keysOf, { keyOfAll: keys.openErasuresKey(keys.partitionPrefix(store, 0)) });
}

/** The partitions in which a worker has or just had jobs. */
export async function partitionsWithWorkers(store: Store): Promise<ReadonlySet<number>> {
  return await partitionsWith(store, (prefix) => [keys.workingKey(prefix)]);
}

/** The partitions that have notices. A stream whose entries were all removed still exists. */
export async function partitionsWithNotices(store: Store): Promise<ReadonlySet<number>> {
  const countIn = (prefix: string) => store.redis.xlen(keys.noticesKey(prefix));
  return await partitionsWith(store, (prefix) => [keys.noticesKey(prefix)], { countIn });
}

/** Index entries checked by one script: a few milliseconds of Redis. */
const PRUNE_CHUNK = 500;

/**
 * Which entries of an index to check: those made before `beforeMs`, until this many chunks of 500 were checked, or this
 * many entries found whose record is still there.
 */
interface PruneRange {
  beforeMs: number;
  maxChunks: number;
  maxKept: number;
}

/**
 * Removes the entries whose record has expired from an index of deliveries, oldest first, from `offset` on. Returns
 * where the next call goes on: 0 after the last one.
 */
export async function pruneIndex(
  store: Store,
  prefix: string,
  key: string,
  { beforeMs, maxChunks, maxKept }: PruneRange,
  offset = 0,
): Promise<number> {
  let next = offset;
  for (let chunk = 0; chunk < maxChunks && next - offset < maxKept; chunk++) {
    const values = { key, beforeMs, offset: next, limit: PRUNE_CHUNK };
    const { lookedAt, removed } = await runScript(store, 'pruneIndex', prefix, values);
    if (lookedAt < PRUNE_CHUNK) return 0;
    next += lookedAt - removed;
  }
  return next;
}

/** Prunes the index of a final status like `pruneIndex`. */
export async function pruneFinished(
  store: Store,
  partition: number,
  status: 'succeeded' | 'failed',
  range: PruneRange,
  offset?: number,
): Promise<number> {
  const prefix = keys.partitionPrefix(store, partition);
  return await pruneIndex(store, prefix, keys.byStatusKey(prefix, status), range, offset);
}

/**
 * Prunes the stream of the succeeded deliveries like `pruneIndex`, after the entry `after`. Returns the entry after
 * which the next call goes on, undefined after the last one.
 */
export async function pruneSucceeded(
  store: Store,
  partition: number,
  { beforeMs, maxChunks, maxKept }: PruneRange,
  after?: string,
): Promise<string | undefined> {
  const prefix = keys.partitionPrefix(store, partition);
  let last = after;
  let kept = 0;
  for (let chunk = 0; chunk < maxChunks && kept < maxKept; chunk++) {
    const pruned = await runScript(store, 'pruneSucceeded', prefix, { after: last, beforeMs, limit: PRUNE_CHUNK });
    if (pruned.lookedAt < PRUNE_CHUNK) return undefined;
    ({ last } = pruned);
    kept += pruned.lookedAt - pruned.removed;
  }
  return last;
}

/** Held deliveries of a partition made before `beforeMs`, oldest first. */
export async function heldBefore(
  store: Store,
  partition: number,
  beforeMs: number,
  limit: number,
): Promise<StoredDelivery[]> {
  const key = keys.byStatusKey(keys.partitionPrefix(store, partition), 'held');
  return await loadExisting(store, await store.redis.zrangebyscore(key, '-inf', beforeMs, 'LIMIT', 0, limit));
}

/** Entries that one script looks at for lost jobs: 2 ms of Redis where each is of another address, mostly far less. */
const RESCUE_CHUNK = 500;

/**
 * Looks through the deliveries that are `pending` or `waiting_for_retry` and were made until `beforeMs`, oldest first,
 * after an entry, and gives those that are in no lane and have no job a new generation and its job. Ends after
 * `maxLookedAt` entries, or `maxRead` that are in no lane, or up to a chunk of 500 more. `next` is the entry after which
 * the following call goes on, undefined at the end. Of two processes at once, one adds the job.
 */
export async function rescueJobs(
  store: Store,
  partition: number,
  status: Extract<DeliveryStatus, 'pending' | 'waiting_for_retry'>,
  range: { beforeMs: number; after?: Position | undefined; maxLookedAt: number; maxRead: number },
  nowMs: number,
): Promise<{ rescued: number; next: Position | undefined }> {
  const prefix = keys.partitionPrefix(store, partition);
  const values = { key: keys.byStatusKey(prefix, status), beforeMs: range.beforeMs, limit: RESCUE_CHUNK, nowMs };
  const total = { lookedAt: 0, read: 0, rescued: 0 };
  let { after } = range;
  while (total.lookedAt < range.maxLookedAt && total.read < range.maxRead) {
    const chunk = await runScript(store, 'rescue', prefix, { ...values, afterMs: after?.ms, afterId: after?.id });
    total.lookedAt += chunk.lookedAt;
    total.read += chunk.read;
    total.rescued += chunk.rescued;
    if (chunk.lookedAt < RESCUE_CHUNK) return { rescued: total.rescued, next: undefined };
    after = chunk.last;
  }
  return { rescued: total.rescued, next: after };
}

/** Subscriptions of a partition that were deleted and still have something to clear. */
export async function closingSubscriptions(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(keys.closingKey(keys.partitionPrefix(store, partition)));
}

/** Entries of an index that one command looks at. */
const SCAN_CHUNK = 500;
/** In the order in which a delivery moves on: one that moves meanwhile is found later, or was found before. */
const UNFINISHED = ['held', 'pending', 'waiting_for_retry'] as const;

/**
 * The unfinished deliveries of a subscription, in no order, by chunk of the indexes that one command looks at: a chunk
 * may be empty. A delivery may be in several chunks.
 */
export async function* unfinishedDeliveries(store: Store, subscriptionId: string): AsyncGenerator<StoredDelivery[]> {
  const prefix = keys.prefixOfSubscription(store, subscriptionId);
  const pattern = `${deliveryIdPrefix(subscriptionId)}*`;
  for (const key of UNFINISHED.map((status) => keys.byStatusKey(prefix, status))) {
    let cursor = '0';
    do {
      const [next, found] = await store.redis.zscan(key, cursor, 'MATCH', pattern, 'COUNT', SCAN_CHUNK);
      const deliveries = await loadExisting(
        store,
        pairs(found).map(([id]) => id),
      );
      yield deliveries.filter((one) => one.subscriptionId === subscriptionId && !isFinished(one.status));
      cursor = next;
    } while (cursor !== '0');
  }
}

/** What tells a deletion of a subscription from others, since one may be created again under its key; undefined if it is not deleted. */
export async function deletionOf(store: Store, id: string): Promise<string | undefined> {
  const key = keys.subscriptionKey(keys.prefixOfSubscription(store, id), id);
  return (await store.redis.hget(key, 'deletion')) ?? undefined;
}

/**
 * Clears away a subscription whose deliveries have all ended since this deletion. What retention keeps of them expires
 * by itself. Changes nothing if it comes too late.
 */
export async function clearDeletedSubscription(store: Store, id: string, deletion: string | undefined): Promise<void> {
  const values = { id, deletion, lifeMs: keptWhileUnfinishedMs(store) };
  await runScript(store, 'clearDeleted', keys.prefixOfSubscription(store, id), values);
}
