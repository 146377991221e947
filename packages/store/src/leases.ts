/** Leases: which process does a kind of work in a partition. */
import { Cluster } from 'ioredis';
import * as keys from './keys.ts';
import { withCircuitBreaker } from './redis/circuit-breaker.ts';
import { runScript } from './scripts.ts';
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
