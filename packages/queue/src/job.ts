/** The jobs of deliveries in BullMQ: their queue, their priority and their ids. No job contains a body, an address or a secret. */
import type { DeliveryJob } from '@posthorn/core';

/** The name of the one queue that each partition has. */
export const QUEUE_NAME = 'deliveries';

/**
 * BullMQ takes jobs with a priority after all jobs without one. So retries wait behind first attempts, and many retries
 * due at once delay no new event (docs/decisions, 20).
 */
export const RETRY_PRIORITY = 1;

/**
 * The id of a job: the delivery's id, and from the second generation on a dot and the generation. BullMQ silently
 * ignores an id that still exists, so a delivery that returns to the queue needs a new one.
 */
export function jobId(job: Pick<DeliveryJob, 'deliveryId' | 'generation'>): string {
  return job.generation === 0 ? job.deliveryId : `${job.deliveryId}.${job.generation}`;
}
