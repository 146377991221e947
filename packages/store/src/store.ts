/**
 * The handle that every function of this package takes: the connection, the key prefix, and the settings of the
 * installation.
 */
import type { Cluster, Redis } from 'ioredis';
import type { StoredFormat } from './format/stored-format.ts';
import { allPrefixes } from './keys.ts';

export interface Store {
  redis: Redis | Cluster;
  prefix: string;
  partitions: number;
  /** Whether one script may use keys of several partitions: in Redis Cluster they are in different slots. */
  spansPartitions: boolean;
  /** How long what has failed is kept. */
  retentionMs: number;
  /** How long what has succeeded is kept: at most `retentionMs`. */
  succeededRetentionMs: number;
  /** The format in which this process writes. */
  format: StoredFormat;
}

/** Reads from all partitions at once. Returns what `read` resolved to for each, as one list. */
export async function readPartitions<T>(store: Store, read: (prefix: string) => Promise<T | T[]>): Promise<T[]> {
  return (await Promise.all(allPrefixes(store).map(read))).flat() as T[];
}

/** The sum of a count over all partitions. */
export async function sumPartitions(store: Store, count: (prefix: string) => Promise<number>): Promise<number> {
  return (await readPartitions(store, count)).reduce((sum, one) => sum + one, 0);
}

/** The numbers of all partitions. */
export function allPartitions(store: Store): number[] {
  return Array.from({ length: store.partitions }, (_, partition) => partition);
}
