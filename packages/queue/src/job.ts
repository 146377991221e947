/** The job of a delivery in BullMQ's terms: its id, name and data. It never contains a body, an address or a secret. */
import type { DeliveryJob, EventRef } from '@posthorn/core';
import type { JobsOptions } from 'bullmq';

/** The name of the one queue that each partition has. */
export const QUEUE_NAME = 'deliveries';

/**
 * BullMQ takes jobs with a priority after all jobs without one. So retries wait behind first attempts, and many retries
 * due at once delay no new event (docs/decisions, 20).
 */
export const RETRY_PRIORITY = 1;

/** A job to add to the queue. */
export type JobToAdd = DeliveryJob & {
  /** Its delivery has had an attempt: the job waits behind first attempts. */
  isRetry?: boolean;
  /** Time until the job is due. */
  delayMs?: number;
};

/**
 * The id of a job: the delivery's id, and from the second generation on a dot and the generation. BullMQ silently
 * ignores an id that still exists, so a delivery that returns to the queue needs a new one.
 */
export function jobId(job: Pick<DeliveryJob, 'deliveryId' | 'generation'>): string {
  return job.generation === 0 ? job.deliveryId : `${job.deliveryId}.${job.generation}`;
}

/**
 * Translates a job for BullMQ. Each field stays below 64 bytes (with an event id made by Posthorn), so that Redis
 * stores the job as a listpack in half the memory. For the same reason `attempts` and `backoff` are missing: the
 * consumer decides when a job comes back.
 */
export function toBullJob(job: JobToAdd): { name: string; data: BullData; opts: JobsOptions } {
  const opts: JobsOptions = { jobId: jobId(job) };
  if (job.delayMs) opts.delay = job.delayMs;
  if (job.isRetry) opts.priority = RETRY_PRIORITY;
  return { name: job.subscriptionId, data: { event_id: job.event }, opts };
}

export interface BullData {
  event_id: EventRef;
}
