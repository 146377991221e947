/** Finds the partitions that take no writes: of the servers of a Redis Cluster, some may while others do not. */
import { StorageUnavailable, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { Cluster, Command } from 'ioredis';
import { allPrefixes, partitionPrefix, replicatedKey } from '../keys.ts';
import type { Store } from '../store.ts';

/** A server without a reply for this long is unavailable. */
const LIMIT_MS = 2_000;
/** How long what was written for a check stays. */
const LIFE_MS = 1_000;

export interface UnavailablePartition {
  partition: number;
  /** `host:port` of its server in a Redis Cluster; undefined if it is not known. */
  server: string | undefined;
  error: StorageUnavailable;
}

/** Rejects with `StorageUnavailable` unless at least one partition takes writes. */
export async function checkAnyPartition(store: Store): Promise<void> {
  const checks = allPrefixes(store).map((prefix) => check(store, prefix));
  await Promise.any(checks).catch((error: AggregateError) => Promise.reject(error.errors[0]));
}

/** Resolves once every partition has taken a write. Rejects with `StorageUnavailable`; without a reply, it waits. */
export async function checkAllPartitions({ redis, ...store }: Store): Promise<void> {
  const prefixes = redis instanceof Cluster ? allPrefixes(store) : [partitionPrefix(store, 0)];
  await Promise.all(prefixes.map((prefix) => redis.set(replicatedKey(prefix), '', 'PX', LIFE_MS)));
}

/**
 * The partitions that take no writes, in order; also those whose server does not reply within 2 s. One write, except in
 * a Cluster, where each partition costs one.
 */
export async function findUnavailable(store: Store): Promise<UnavailablePartition[]> {
  const ofAll = store.redis instanceof Cluster ? undefined : check(store, partitionPrefix(store, 0));
  const checks = allPrefixes(store).map(async (prefix, partition) => {
    try {
      await (ofAll ?? check(store, prefix));
      return [];
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      return [{ partition, server: serverOf(store, prefix), error }];
    }
  });
  return (await Promise.all(checks)).flat();
}

async function check(store: Store, prefix: string): Promise<void> {
  const written = store.redis.set(replicatedKey(prefix), '', 'PX', LIFE_MS);
  await withTimeLimit(LIMIT_MS, written).catch((error: unknown) => {
    throw error instanceof TimeLimitExceeded ? new StorageUnavailable(`No reply within ${LIMIT_MS} ms`) : error;
  });
}

function serverOf({ redis }: Store, prefix: string): string | undefined {
  if (!(redis instanceof Cluster)) return undefined;
  return redis.slots[new Command('get', [prefix]).getSlot()]?.[0];
}
