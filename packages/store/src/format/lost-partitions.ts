/** Notices that a master of a Redis Cluster has lost its data: the record of the installation may be on another one. */
import { randomUUID } from 'node:crypto';
import { StorageUnavailable } from '@posthorn/core';
import { allPrefixes, begunKey } from '../keys.ts';
import { withCircuitBreaker } from '../redis/circuit-breaker.ts';
import type { Store } from '../store.ts';

/**
 * Returns a function that resolves with the partitions that have lost their data since it first looked: their mark is
 * gone, or another process has begun them anew. The first look marks those that have no mark. A partition that is
 * unavailable is not among them.
 */
export function createLostPartitions(store: Pick<Store, 'redis' | 'prefix' | 'partitions'>): () => Promise<number[]> {
  const known = new Map<number, string | null>();
  const readMark = async (prefix: string, partition: number) => {
    const key = begunKey(prefix);
    const mark = await store.redis.get(key);
    if (mark !== null || known.has(partition)) return mark;
    await store.redis.set(key, randomUUID(), 'NX');
    return await store.redis.get(key);
  };
  const isLost = async (prefix: string, partition: number) => {
    const mark = await withCircuitBreaker(store, prefix, () => readMark(prefix, partition));
    if (!known.has(partition)) known.set(partition, mark);
    return mark !== known.get(partition);
  };
  return async () => {
    const looks = allPrefixes(store).map(async (prefix, partition) => {
      const found = await isLost(prefix, partition).catch((error: unknown) => {
        if (!(error instanceof StorageUnavailable)) throw error;
        return false;
      });
      return found ? [partition] : [];
    });
    return (await Promise.all(looks)).flat();
  };
}
