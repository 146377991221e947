/** The delivery and its attempts: one event on its way to one address. */
import type { Environment, EventType } from './event.ts';

/** Specification 3.1 and interface 6.2. The last two are final. The order is stored: only append. */
export const DELIVERY_STATUSES = ['pending', 'waiting_for_retry', 'held', 'succeeded', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Whether a delivery has ended and nothing will be sent for it any more. */
export function isFinished(status: DeliveryStatus): boolean {
  return status === 'succeeded' || status === 'failed';
}

/** The order is stored: only append. */
export const ATTEMPT_ERRORS = ['timeout', 'redirect', 'status', 'address_blocked', 'dns', 'connection', 'tls'] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/** Why a failed delivery failed: the error of its last attempt, or what ended it without one. Stored as words. */
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
