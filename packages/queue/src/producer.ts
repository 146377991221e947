/** Adds jobs to the queue of their partition, and reads what is in it. */
import type { DeliveryJob } from '@posthorn/core';
import { ErrorCode, type Job, Queue } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { type BullData, type JobToAdd, jobId, QUEUE_NAME, toBullJob } from './job.ts';

/** Jobs per call of BullMQ, which sends one script per job in a single pipeline. */
const MAX_CHUNK = 500;
/** BullMQ always writes a stream of events; this keeps it at a few kB. */
const MAX_EVENTS_KEPT = 1_000;

export interface Producer {
  /**
   * Adds jobs to a partition's queue. A job that exists already is left unchanged. BullMQ adds a batch one by one, so after an error a part
   * may have been added: call again with the same jobs. Throws `StorageUnavailable`.
   */
  add(partition: number, jobs: readonly JobToAdd[]): Promise<void>;
  /** Returns those of the jobs that are not in the queue in any state. */
  missing(partition: number, jobs: readonly DeliveryJob[]): Promise<DeliveryJob[]>;
  /** Removes the jobs that no worker has taken. */
  remove(partition: number, jobs: readonly Pick<DeliveryJob, 'deliveryId' | 'generation'>[]): Promise<void>;
  /** Moves up to `limit` retries that wait behind first attempts, oldest first, ahead of them. Does nothing if no first attempt waits. */
  advanceRetries(partition: number, limit: number): Promise<void>;
  /** Returns the ids of the jobs of an address that workers have taken. */
  active(partition: number, subscriptionId: string): Promise<string[]>;
  /** Counts jobs by state, over all partitions. */
  counts(): Promise<QueueCounts>;
  /**
   * Resolves once BullMQ has defined its scripts on the connection. Where the connection pipelines by itself, nothing else may use it before:
   * ioredis throws outside of any promise if a script joins a pipeline that was begun before the script was defined.
   */
  ready(): Promise<void>;
  /** BullMQ's own queues, one per partition, for Bull Board. */
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
        streams: { events: { maxLen: MAX_EVENTS_KEPT } },
        skipVersionCheck: true,
      }),
  );
  for (const queue of queues) queue.on('error', options.onError);
  const queueOf = (partition: number) => queues[partition]!;

  return {
    queues,
    async add(partition, jobs) {
      for (let start = 0; start < jobs.length; start += MAX_CHUNK) {
        const chunk = jobs.slice(start, start + MAX_CHUNK).map(toBullJob);
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
      // Each goes to the front of the queue, so the oldest goes last.
      await Promise.all(retries.reverse().map(advance));
    },
    async active(partition, subscriptionId) {
      const jobs = await queueOf(partition).getActive();
      // A job that ended between BullMQ's two reads is undefined.
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
    async ready() {
      await Promise.all(queues.map((queue) => queue.waitUntilReady()));
      // Its reply comes after every pipeline that was begun before.
      await options.redis.ping();
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
    // A worker took it meanwhile and it is done.
    if ((error as { code?: number }).code !== ErrorCode.JobNotExist) throw error;
  }
}
