/** The subscription: what an operator may ask for, its statuses, and why it has one. */
import { z } from 'zod';
import { ENVIRONMENTS, SESSION_EVENT_TYPES } from './event.ts';
import { parseDurationMs } from './time.ts';

/** Specification 3.2. Only an `active` address is sent to. */
export const SUBSCRIPTION_STATUSES = ['awaiting_validation', 'active', 'paused', 'refused'] as const;
export type SubscriptionStatus = (typeof SUBSCRIPTION_STATUSES)[number];

export const STATUS_REASONS = [
  'private_address',
  'local_address',
  'redirect',
  'unreachable',
  'consecutive_failures',
  'operator',
] as const;
export type StatusReason = (typeof STATUS_REASONS)[number];

/** How long both secrets sign after a rotation, where the caller does not say. */
const DEFAULT_OVERLAP = '24h';
const LONGEST_OVERLAP_MS = 30 * 86_400_000;

/** Everything stored of a subscription but its sealed secrets. */
export interface Subscription {
  id: string;
  url: string;
  /** `'all'` or a non-empty selection of the session types; `webhook.test` goes to one address on request, whatever it selected. */
  eventTypes: 'all' | SessionEventType[];
  environment: SubscriptionEnvironment;
  description: string;
  status: SubscriptionStatus;
  statusReason: StatusReason | null;
  consecutiveFailures: number;
  createdAtMs: number;
  updatedAtMs: number;
}
type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];

export const SUBSCRIPTION_ENVIRONMENTS = [...ENVIRONMENTS, 'both'] as const;
export type SubscriptionEnvironment = (typeof SUBSCRIPTION_ENVIRONMENTS)[number];

const eventTypes = z.union(
  [
    z.literal('all'),
    z
      .array(z.enum(SESSION_EVENT_TYPES))
      .min(1)
      .transform((types) => SESSION_EVENT_TYPES.filter((type) => types.includes(type))),
  ],
  { error: `Expected "all" or a non-empty list of ${SESSION_EVENT_TYPES.join(', ')}` },
);
/** Durations that may also be none at all, up to 30 days. */
const overlapMs = z
  .string()
  .transform((text) => (/^0(ms|s|m|h|d)$/.test(text) ? 0 : parseDurationMs(text)))
  .refine(
    (ms) => ms !== undefined && ms <= LONGEST_OVERLAP_MS,
    'Expected a number and ms, s, m, h or d, such as 24h; at most 30d',
  )
  .transform((ms) => ms!);
const url = z.string().min(1).max(2048);
const description = z.string().max(1000);

/** A secret that somebody chose: 16 to 256 printable ASCII characters. */
export const OWN_SECRET = /^[\x21-\x7e]{16,256}$/;

/** The body of `POST /v1/subscriptions` (interface 4). Whether the address is acceptable is left to sender's guard. */
export const newSubscriptionSchema = z.strictObject({
  url,
  event_types: eventTypes,
  environment: z.enum(SUBSCRIPTION_ENVIRONMENTS),
  description: description.optional(),
  secret: z.string().regex(OWN_SECRET, 'Expected 16 to 256 printable ASCII characters').optional(),
});

/** The body of `PATCH /v1/subscriptions/{id}`. */
export const subscriptionPatchSchema = z
  .strictObject({
    url: url.optional(),
    event_types: eventTypes.optional(),
    environment: z.enum(SUBSCRIPTION_ENVIRONMENTS).optional(),
    description: description.optional(),
  })
  .refine((patch) => Object.keys(patch).length > 0, 'Expected at least one field to change');

/** The body of `POST /v1/subscriptions/{id}/rotate-secret`. */
export const rotationSchema = z.strictObject({
  overlap: overlapMs.prefault(DEFAULT_OVERLAP),
});

/** The body of `POST /v1/subscriptions/{id}/test`. */
export const testDeliverySchema = z.strictObject({ environment: z.enum(ENVIRONMENTS).optional() });
