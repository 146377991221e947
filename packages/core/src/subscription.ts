/** The subscription, its statuses, and the reasons for them. */
import type { AddressState } from './address-state.ts';
import { ENVIRONMENTS, type EventType } from './event.ts';

/** Specification 3.2. Only an `active` address is sent to. */
export const SUBSCRIPTION_STATUSES = ['awaiting_validation', 'active', 'paused', 'refused'] as const;
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

/**
 * The orders in which subscriptions can be listed. `worst`: failing ones first, those with the most failed attempts (by
 * powers of ten) before others, then those that have failed longest; then paused ones, then the rest, both newest
 * first.
 */
export const SUBSCRIPTION_SORTS = ['newest', 'url', 'worst'] as const;
export type SubscriptionSort = (typeof SUBSCRIPTION_SORTS)[number];

export const STATUS_REASONS = [
  'private_address',
  'local_address',
  'redirect',
  'unreachable',
  'consecutive_failures',
  'operator',
] as const;
export type StatusReason = (typeof STATUS_REASONS)[number];

/** Everything stored of a subscription but its sealed secrets. */
export interface Subscription extends AddressState {
  id: string;
  /** The name that the operators chose for it; its id follows from it. Null for most. */
  key: string | null;
  url: string;
  /**
   * `'all'` or a non-empty selection. `webhook.test` may be in it but changes nothing: a test goes to one address on
   * request, whatever that selected.
   */
  eventTypes: 'all' | EventType[];
  environment: SubscriptionEnvironment;
  description: string;
  createdAtMs: number;
  updatedAtMs: number;
  /** The last resume, since its last change of status by an operator or a validation; null where there was none. */
  lastResume: LastResume | null;
  /**
   * When it was last paused; a resume that failed does not count. Null if it is not paused, or was paused by release
   * 0.1.0.
   */
  pausedAtMs: number | null;
}

/** How the last resume went. `deliveryId` is its trial; null while none is chosen, or if nothing was held. */
export interface LastResume {
  atMs: number;
  outcome: ResumeOutcome;
  deliveryId: string | null;
}
export const RESUME_OUTCOMES = ['trying', 'succeeded', 'failed'] as const;
export type ResumeOutcome = (typeof RESUME_OUTCOMES)[number];

export const SUBSCRIPTION_ENVIRONMENTS = [...ENVIRONMENTS, 'both'] as const;
export type SubscriptionEnvironment = (typeof SUBSCRIPTION_ENVIRONMENTS)[number];

/** A signing secret that an operator chose: 16 to 256 printable ASCII characters. */
export const OWN_SECRET = /^[\x21-\x7e]{16,256}$/;
