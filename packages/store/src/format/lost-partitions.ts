/** Notices that a master of a Redis Cluster has lost its data: the record of the installation may be on another one. */
import { randomUUID } from 'node:crypto';
import { StorageUnavailable, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { allPrefixes, begunKey } from '../keys.ts';
import type { Store } from '../store.ts';

/** Far longer than a master takes to reply, unless it hangs or is away. */
const LIMIT_MS = 2_000;

export type LostPartitions = ReturnType<typeof createLostPartitions>;

/**
 * Knows the mark of each partition since it first looked, and marks those that had none then. A partition whose mark is
 * gone, or that another process has begun anew, has lost its data.
 */
export function createLostPartitions(store: Pick<Store, 'redis' | 'prefix' | 'partitions'>) {
  const prefixes = allPrefixes(store);
  const known = new Map<string, string | null>();
  /** Those not looked at since the last doubt. */
  let doubted = new Set<string>();
  const readMark = async (prefix: string) => {
    const key = begunKey(prefix);
    const mark = await store.redis.get(key);
    if (mark !== null || known.has(prefix)) return mark;
    await store.redis.set(key, randomUUID(), 'NX');
    return await store.redis.get(key);
  };
  const isLost = async (prefix: string) => {
    const looked = doubted;
    const mark = await readMark(prefix);
    if (!known.has(prefix)) known.set(prefix, mark);
    if (mark !== known.get(prefix)) return true;
    looked.delete(prefix);
    return false;
  };
  return {
    /**
     * The numbers of the partitions that have lost their data. One that is unavailable, or does not reply within 2 s,
     * is not among them. Without a circuit breaker, which would not ask a master that has just come back.
     */
    async find(): Promise<number[]> {
      const looks = prefixes.map(async (prefix, partition) => {
        const found = await withTimeLimit(LIMIT_MS, isLost(prefix)).catch((error: unknown) => {
          if (!(error instanceof StorageUnavailable || error instanceof TimeLimitExceeded)) throw error;
          return false;
        });
        return found ? [partition] : [];
      });
      return (await Promise.all(looks)).flat();
    },
    /** To be called when a server of the Cluster is reached again, before it is used: it may have lost its data. */
    doubt(): void {
      doubted = new Set(prefixes);
    },
    /**
     * Whether the partition with this prefix has lost its data; undefined if there was no doubt since the last look.
     */
    isLost: (prefix: string): Promise<boolean> | undefined => (doubted.has(prefix) ? isLost(prefix) : undefined),
  };
}
