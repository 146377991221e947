/** The job of a delivery, in BullMQ's terms: how it is named and what it carries. Never a body, an address or a secret. */
import type { DeliveryJob, EventRef } from '@posthorn/core';
import type { JobsOptions } from 'bullmq';

/** The name of the one queue that each partition has. */
export const QUEUE_NAME = 'deliveries';

/**
 * What BullMQ takes after everything that waits without a priority: retries stand behind first attempts, so that many retries due at
 * once keep no new event waiting (docs/decisions, 20).
 */
export const RETRY_PRIORITY = 1;

/** What is to be put into the queue. */
export type JobToAdd = DeliveryJob & {
  /** Its delivery has had an attempt: it stands behind first attempts. */
  isRetry?: boolean;
  /** It is not due before this has passed. */
  delayMs?: number;
};

/**
 * A job's id: the delivery's, and from the second generation on its number behind a dot. BullMQ silently ignores an id that
 * still exists, so a delivery that goes back into the queue needs a new one.
 */
export function jobId(job: Pick<DeliveryJob, 'deliveryId' | 'generation'>): string {
  return job.generation === 0 ? job.deliveryId : `${job.deliveryId}.${job.generation}`;
}

/**
 * The job as BullMQ takes it. Each field stays below 64 bytes (with an event id that Posthorn made), so that Redis keeps the
 * job as a listpack: half the memory. That is why `attempts` and `backoff` are not here: the consumer, which knows the
 * schedule, gives them to each job it takes.
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

/** The delivery behind a job taken from the queue. */
export function fromBullJob(job: { id?: string | undefined; name: string; data: BullData }): DeliveryJob {
  const [deliveryId = '', generation = '0'] = (job.id ?? '').split('.');
  return { deliveryId, generation: Number(generation), subscriptionId: job.name, event: job.data.event_id };
}
