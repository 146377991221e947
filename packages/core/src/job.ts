/** A delivery's job in BullMQ: its queue, its id, and how a worker takes and locks it. */
import type { EventRef } from './ids.ts';

/** The name of the one queue of BullMQ that each partition has. */
export const QUEUE_NAME = 'deliveries';

/** One of BullMQ's keys in a partition, such as `wait`, or that of a job by its id. */
export const queueKey = (prefix: string, name: string) => `${prefix}:${QUEUE_NAME}:${name}`;

/**
 * BullMQ takes jobs with a priority after all jobs without one. So retries wait behind first attempts, and many retries
 * due at once delay no new event (docs/decisions, 20).
 */
export const RETRY_PRIORITY = 1;

/**
 * Makes a worker read the delivery's record; one of an older generation than the record's does nothing. No job contains
 * a body, an address or a secret.
 */
export interface DeliveryJob {
  deliveryId: string;
  /**
   * Counts the delivery's jobs: each release or rescue makes the next one. From 0, and after the delivery was held from
   * the time of its release.
   */
  generation: number;
  subscriptionId: string;
  event: EventRef;
}

/**
 * Reads the id of a job: the delivery's id, and from the second generation on a dot and the generation. A delivery that
 * returns to the queue gets a job with another id, since its earlier one may still be there.
 */
export function readJobId(id: string): Pick<DeliveryJob, 'deliveryId' | 'generation'> {
  const dot = id.indexOf('.');
  return dot === -1
    ? { deliveryId: id, generation: 0 }
    : { deliveryId: id.slice(0, dot), generation: Number(id.slice(dot + 1)) };
}

/** No delivery has as many jobs as this, and none was released so soon after 1970. */
export const MIN_RELEASED_AT_MS = 1e9;

/** When a delivery that was held was released, by the generation of its job; undefined if it was never held. */
export function releasedAtMs(generation: number): number | undefined {
  return generation < MIN_RELEASED_AT_MS ? undefined : generation;
}

/** Jobs to take from one partition. */
export interface Take {
  partition: number;
  /** Identifies the locks. */
  token: string;
  /** At most this many. */
  limit: number;
}

/** How long a job that is taken is locked, and since when. */
export interface LockTimes {
  lockMs: number;
  nowMs: number;
}

/** A job that is locked to this process, and how the next one is locked if its end takes one. */
export interface LockedJob extends LockTimes {
  jobId: string;
  token: string;
  /** Identifies the lock of the next job; undefined: none is taken. */
  nextToken: string | undefined;
  /**
   * Identifies the locks of parked deliveries of the same address that are taken; undefined: none is. Only with a
   * success.
   */
  laneToken?: string | undefined;
}

/** The job that was taken, with what was read of it; or when the next one is due (undefined: when one is added). */
export type NextJob<J> = { job: J } | { dueAtMs: number | undefined };
