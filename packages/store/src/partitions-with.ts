/** Finds the partitions in which something waits, so that the others need not be asked. */
import { StorageUnavailable } from '@posthorn/core';
import { Cluster } from 'ioredis';
import * as keys from './keys.ts';
import { withCircuitBreaker } from './redis/circuit-breaker.ts';
import type { Store } from './store.ts';

interface WhatCounts {
  /** A key of the first partition. */
  keyOfAll?: string;
  /** Asked of each partition if any of the keys exists. More than 0: it has work. By default, any key is work. */
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
