/** Wakes workers for queues in which operators limit how many jobs may be active (BullMQ's global concurrency). */
import { queueKey } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';

/** Sets the marker if jobs wait. Keys: `wait`, `prioritized`, `marker`. */
const WAKE = `if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then redis.call('ZADD', KEYS[3], 0, '0') end`;
/**
 * How long a process relies on what it has read of a limit. After one is set, workers look at the queue by themselves
 * every few seconds.
 */
const LIMIT_READ_MS = 1_000;

export interface LimitedQueuesOptions {
  redis: Redis | Cluster;
  partitionPrefixes: readonly string[];
  /** In milliseconds, from any time on. */
  now?: () => number;
}

export class LimitedQueues {
  readonly #redis: Redis | Cluster;
  readonly #now: () => number;
  /** By partition: its keys, and whether it has a limit, as last read. */
  readonly #queues: { key: (name: string) => string; isLimited: boolean; readAtMs: number }[];

  constructor({ redis, partitionPrefixes, now = () => performance.now() }: LimitedQueuesOptions) {
    this.#redis = redis;
    this.#now = now;
    this.#queues = partitionPrefixes.map((prefix) => ({
      key: (name) => queueKey(prefix, name),
      isLimited: true,
      readAtMs: Number.NEGATIVE_INFINITY,
    }));
  }

  /**
   * A job of a partition has ended: wakes a worker if the queue has a limit and others wait. They may wait for that
   * end, and BullMQ sets no marker then.
   */
  async wake(partition: number): Promise<void> {
    const queue = this.#queues[partition];
    if (!queue) return;
    if (this.#now() - queue.readAtMs >= LIMIT_READ_MS) {
      queue.readAtMs = this.#now();
      queue.isLimited = (await this.#redis.hexists(queue.key('meta'), 'concurrency')) === 1;
    }
    const keys = ['wait', 'prioritized', 'marker'].map(queue.key);
    if (queue.isLimited) await this.#redis.eval(WAKE, keys.length, ...keys);
  }
}
