/** Puts deliveries into the queue of their partition, and tells what is in it. */
import type { DeliveryJob } from '@posthorn/core';
import { ErrorCode, type Job, Queue } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { type BullData, type JobToAdd, jobId, QUEUE_NAME, toBullJob } from './job.ts';

/** Jobs a call of BullMQ takes at most: it sends one script a job in a single pipeline. */
const CHUNK = 500;
/** BullMQ can't be told to write no events; this keeps its stream at a few kB. */
const EVENTS_KEPT = 1_000;

export interface Producer {
  /**
   * Adds jobs to a partition's queue; one that is there already is left as it is. BullMQ adds a batch one by one, so a failure
   * may leave a part of it: call again with the same jobs. Throws `StorageUnavailable`.
   */
  add(partition: number, jobs: readonly JobToAdd[]): Promise<void>;
  /** Those of the jobs that are nowhere in the queue. */
  missing(partition: number, jobs: readonly DeliveryJob[]): Promise<DeliveryJob[]>;
  /** Removes jobs that no worker has in hand. */
  remove(partition: number, jobs: readonly Pick<DeliveryJob, 'deliveryId' | 'generation'>[]): Promise<void>;
  /** Puts up to `limit` of the retries that stand behind first attempts, oldest first, before them; where none waits before them, nothing. */
  advanceRetries(partition: number, limit: number): Promise<void>;
  /** Ids of the jobs of an address that a worker has in hand. */
  active(partition: number, subscriptionId: string): Promise<string[]>;
  /** Jobs by state, over all partitions. */
  counts(): Promise<QueueCounts>;
  /** BullMQ's own queues, one a partition, for Bull Board. */
  queues: Queue<BullData>[];
  close(): Promise<void>;
}

export interface QueueCounts {
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
}

/** A producer over one connection. `partitionPrefixes` are in the order of the partitions. */
export function createProducer(options: {
  redis: Redis | Cluster;
  partitionPrefixes: readonly string[];
  onError: (error: Error) => void;
}): Producer {
  const queues = options.partitionPrefixes.map(
    (prefix) =>
      new Queue<BullData>(QUEUE_NAME, {
        connection: options.redis,
        prefix,
        streams: { events: { maxLen: EVENTS_KEPT } },
        skipVersionCheck: true,
      }),
  );
  for (const queue of queues) queue.on('error', options.onError);
  const queueOf = (partition: number) => queues[partition]!;

  return {
    queues,
    async add(partition, jobs) {
      for (let start = 0; start < jobs.length; start += CHUNK) {
        const chunk = jobs.slice(start, start + CHUNK).map(toBullJob);
        if (chunk.length === 1) await queueOf(partition).add(chunk[0]!.name, chunk[0]!.data, chunk[0]!.opts);
        else await queueOf(partition).addBulk(chunk);
      }
    },
    async missing(partition, jobs) {
      const queue = queueOf(partition);
      const there = await Promise.all(jobs.map((job) => options.redis.exists(queue.toKey(jobId(job)))));
      return jobs.filter((_, i) => there[i] === 0);
    },
    async remove(partition, jobs) {
      await Promise.all(jobs.map((job) => queueOf(partition).remove(jobId(job))));
    },
    async advanceRetries(partition, limit) {
      const queue = queueOf(partition);
      const counts = await queue.getJobCounts('wait', 'prioritized');
      if (!counts.wait || !counts.prioritized) return;
      const retries = await queue.getPrioritized(0, limit - 1);
      // Each goes to the very front: the oldest last.
      await Promise.all(retries.reverse().map(advance));
    },
    async active(partition, subscriptionId) {
      const jobs = await queueOf(partition).getActive();
      // A job that ended between the two reads of BullMQ is missing.
      return jobs.flatMap((job) => (job?.name === subscriptionId ? [job.id!] : []));
    },
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
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

async function advance(job: Job | undefined): Promise<void> {
  try {
    await job?.changePriority({ priority: 0, lifo: true });
  } catch (error) {
    // A worker has taken it meanwhile, and it is gone.
    if ((error as { code?: number }).code !== ErrorCode.JobNotExist) throw error;
  }
}
