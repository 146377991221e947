/** The job of a delivery, in BullMQ's terms: how it is named and what it carries. Never a body, an address or a secret. */
import type { JobsOptions } from 'bullmq';

/** The name of the one queue that each partition has. */
export const QUEUE_NAME = 'deliveries';

/** What a job stands for: a delivery, and which generation of its job this is. */
export interface DeliveryJob {
  deliveryId: string;
  generation: number;
  subscriptionId: string;
  eventId: string;
}

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
export function toBullJob(job: DeliveryJob, delayMs: number): { name: string; data: BullData; opts: JobsOptions } {
  return {
    name: job.subscriptionId,
    data: { event_id: job.eventId },
    opts: delayMs > 0 ? { jobId: jobId(job), delay: delayMs } : { jobId: jobId(job) },
  };
}

export interface BullData {
  event_id: string;
}

/** The delivery behind a job taken from the queue. */
export function fromBullJob(job: { id?: string | undefined; name: string; data: BullData }): DeliveryJob {
  const [deliveryId = '', generation = '0'] = (job.id ?? '').split('.');
  return { deliveryId, generation: Number(generation), subscriptionId: job.name, eventId: job.data.event_id };
}
