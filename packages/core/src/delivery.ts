/** The delivery and its attempts: one event on its way to one address. */
import type { Environment, EventType } from './event.ts';
import type { EventRef } from './ids.ts';

/** Specification 3.1 and interface 6.2. The last two are final. The order is stored: only append. */
export const DELIVERY_STATUSES = ['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Whether a delivery has ended and nothing will be sent for it any more. */
export function isFinished(status: DeliveryStatus): boolean {
  return status === 'succeeded' || status === 'failed';
}

export const ATTEMPT_ERRORS = ['timeout', 'redirect', 'status', 'address_blocked', 'dns', 'connection', 'tls'] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/** Why a failed delivery failed: the error of its last attempt, or what ended it without one. */
export const FAILURE_REASONS = [...ATTEMPT_ERRORS, 'expired', 'subscription_deleted', 'cancelled', 'erased'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** One HTTP request of a delivery, numbered from 1. */
export interface Attempt {
  number: number;
  startedAtMs: number;
  durationMs: number;
  /** The status line's code; null where no response came. */
  statusCode: number | null;
  /** Null exactly when the attempt succeeded. */
  error: AttemptError | null;
}

export interface Delivery {
  id: string;
  eventId: string;
  eventType: EventType;
  environment: Environment;
  subscriptionId: string;
  status: DeliveryStatus;
  attemptCount: number;
  maxAttempts: number;
  nextAttemptAtMs: number | null;
  replayOf: string | null;
  failureReason: FailureReason | null;
  createdAtMs: number;
  finishedAtMs: number | null;
  attempts: Attempt[];
  /** The payload of its event, and what came back from its attempts, have been erased. */
  erased: boolean;
}

/** A delivery's job: makes a worker read the delivery's record. A job of an older generation than the record's does nothing. */
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
 * The id of a job: the delivery's id, and from the second generation on a dot and the generation. BullMQ silently
 * ignores an id that still exists, so a delivery that returns to the queue needs a new one.
 */
export function jobIdOf({ deliveryId, generation }: Pick<DeliveryJob, 'deliveryId' | 'generation'>): string {
  return generation === 0 ? deliveryId : `${deliveryId}.${generation}`;
}

/** Reads what `jobIdOf` has written. */
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
