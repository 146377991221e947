/**
 * The queues of all partitions: finds and counts jobs, and moves retries ahead. Scripts of the store add and remove
 * them.
 */
import { deliveryIdPrefix, QUEUE_NAME } from '@posthorn/core';
import { ErrorCode, type Job, Queue } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';

/** BullMQ always writes a stream of events; this keeps it at a few kB. */
const MAX_EVENTS_KEPT = 1_000;

/** The queues over one connection. `partitionPrefixes` are in the order of the partitions. */
export type JobQueues = ReturnType<typeof createJobQueues>;
export function createJobQueues(options: {
  redis: Redis | Cluster;
  partitionPrefixes: readonly string[];
  onError: (error: Error) => void;
}) {
  const queues = options.partitionPrefixes.map(
    (prefix) =>
      new Queue(QUEUE_NAME, {
        connection: options.redis,
        prefix,
        streams: { events: { maxLen: MAX_EVENTS_KEPT } },
        skipVersionCheck: true,
      }),
  );
  for (const queue of queues) queue.on('error', options.onError);
  const queueOf = (partition: number): Queue => {
    const queue = queues[partition];
    if (!queue) throw new RangeError(`No partition ${partition}: there are ${queues.length}`);
    return queue;
  };

  return {
    /** BullMQ's own queues, one per partition, for Bull Board. */
    all: queues,
    /** Moves up to `limit` retries, oldest first, ahead of any first attempts that wait before them. */
    async advanceRetries(partition: number, limit: number): Promise<void> {
      const queue = queueOf(partition);
      const counts = await queue.getJobCounts('wait', 'prioritized');
      if (!counts.wait || !counts.prioritized) return;
      const retries = await queue.getPrioritized(0, limit - 1);
      // Each goes to the front of the queue, so the oldest goes last.
      await Promise.all(retries.reverse().map(advance));
    },
    /** Returns the ids of an address's jobs that workers have taken; very rarely also that of another address's job. */
    async active(partition: number, subscriptionId: string): Promise<string[]> {
      const prefix = deliveryIdPrefix(subscriptionId);
      const ids = await options.redis.lrange(queueOf(partition).toKey('active'), 0, -1);
      return ids.filter((id) => id.startsWith(prefix));
    },
    /** Counts jobs by state, over all partitions. */
    async counts() {
      const all = await Promise.all(
        queues.map((queue) => queue.getJobCounts('wait', 'prioritized', 'active', 'delayed', 'failed')),
      );
      const sum = (state: string) => all.reduce((total, counts) => total + (counts[state] ?? 0), 0);
      return {
        waiting: sum('wait') + sum('prioritized'),
        active: sum('active'),
        delayed: sum('delayed'),
        failed: sum('failed'),
      };
    },
    /** Whether someone has paused the queue of a partition with BullMQ's API. */
    async arePaused(): Promise<boolean> {
      return (await Promise.all(queues.map((queue) => queue.isPaused()))).includes(true);
    },
    /** Resolves once BullMQ has defined its scripts on the connection. */
    async ready(): Promise<void> {
      await Promise.all(queues.map((queue) => queue.waitUntilReady()));
    },
    async close(): Promise<void> {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

async function advance(job: Job | undefined): Promise<void> {
  try {
    await job?.changePriority({ priority: 0, lifo: true });
  } catch (error) {
    // A worker has taken the job meanwhile, and it is done.
    if ((error as { code?: number }).code !== ErrorCode.JobNotExist) throw error;
  }
}
