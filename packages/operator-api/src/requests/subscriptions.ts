/** What the operator API accepts about subscriptions and their addresses. */
import {
  DAY_MS,
  ENVIRONMENTS,
  EVENT_TYPES,
  eventTypeSchema,
  HEALTH_STATES,
  instantMsSchema,
  OWN_SECRET,
  parseDurationMs,
  type StatusReason,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_KEY,
  SUBSCRIPTION_SORTS,
  SUBSCRIPTION_STATUSES,
} from '@posthorn/core';
import { z } from 'zod';
import { cursorOf, EXAMPLE_SUBSCRIPTION_ID, eventId, inOrder, page, replayScope, subscriptionId } from './fields.ts';

export const subscriptionParamsSchema = z.object({ id: subscriptionId });

/** The query of `GET /v1/subscriptions`. */
export const subscriptionsQuerySchema = z.strictObject({
  q: z
    .string()
    .max(200)
    .optional()
    .describe('Words that each occur in the url or the description, or begin the id, in upper or lower case'),
  status: z.enum(SUBSCRIPTION_STATUSES).optional(),
  environment: z.enum(SUBSCRIPTION_ENVIRONMENTS).optional(),
  health: z.enum(HEALTH_STATES).optional().describe('The `state` of its health'),
  sort: z
    .enum(SUBSCRIPTION_SORTS)
    .default('newest')
    .describe(
      '`url` sorts by the address without its scheme. `worst` begins with the failing ones: those with the most failed attempts (by powers of ten) first, then those that have failed longest. Paused ones follow, then all others.',
    ),
  ...page,
  // It contains the beginning of an address.
  cursor: cursorOf(1_000),
});

/** The most addresses of one bulk resume. */
export const MAX_RESUMED = 250;
/** Why an address may be paused. */
export const PAUSE_REASONS = ['consecutive_failures', 'operator'] as const satisfies StatusReason[];

const { q, environment, health } = subscriptionsQuerySchema.shape;

/** The body of `POST /v1/subscriptions/resume`. */
export const bulkResumeSchema = z
  .strictObject({
    subscription_ids: z
      .array(subscriptionId)
      .min(1)
      .max(MAX_RESUMED)
      .optional()
      .describe(`1 to ${MAX_RESUMED} addresses; or all of one \`status_reason\``),
    status_reason: z
      .enum([...PAUSE_REASONS, 'unreachable'])
      .optional()
      .describe(
        'The addresses that are paused for this reason: `unreachable` only if release 0.1.0 validated them while they were paused',
      ),
    q,
    environment,
    health,
    limit: z.int().min(1).max(MAX_RESUMED).default(MAX_RESUMED).describe('Paused addresses looked at'),
    cursor: cursorOf(1_000),
  })
  .superRefine(({ subscription_ids: ids, status_reason: reason, limit: _, ...filter }, context) => {
    if ((ids === undefined) === (reason === undefined))
      context.addIssue({
        code: 'custom',
        path: ['subscription_ids'],
        message: 'Expected either subscription_ids or status_reason',
      });
    for (const [name, value] of Object.entries(filter)) {
      if (ids !== undefined && value !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: 'Expected only together with status_reason' });
    }
  })
  .meta({ examples: [{ subscription_ids: [EXAMPLE_SUBSCRIPTION_ID] }] });

/** The most ids of one lookup. */
export const MAX_LOOKUP_IDS = 250;

/** The query of `GET /v1/subscriptions/lookup`. */
export const lookupQuerySchema = z.strictObject({
  ids: z
    .string()
    .transform((ids) => ids.split(','))
    .pipe(z.array(subscriptionId).max(MAX_LOOKUP_IDS))
    .describe(`Up to ${MAX_LOOKUP_IDS} ids, separated by commas`),
});

/** The query of `GET /v1/subscriptions/{id}/failed-deliveries`. */
export const failedDeliveriesQuerySchema = inOrder(z.strictObject(replayScope));

/** Redis has text in UTF-8, which has no halves of surrogate pairs: what is stored would not be what was sent. */
const storedText = z.string().refine((text) => text.isWellFormed(), 'Expected text without half of a surrogate pair');
/**
 * They come with text that is copied, and nobody sees why the receiver's path is not found. `checkUrl` refuses those of
 * Latin-1.
 */
const INVISIBLE = /(?![ \u00a0])[\p{Cf}\p{Z}]/u;
const url = storedText
  .min(1)
  .max(2048)
  .refine((text) => !INVISIBLE.test(text), 'Expected a URL without invisible characters, such as a zero-width space');
const description = storedText.max(1000);
const eventTypes = z.union(
  [
    z.literal('all'),
    z
      .array(eventTypeSchema)
      .min(1)
      .transform((types) => EVENT_TYPES.filter((type) => types.includes(type))),
  ],
  { error: `Expected "all" or a non-empty list of ${EVENT_TYPES.join(', ')}` },
);

/**
 * The body of `POST /v1/subscriptions` (interface 4). It does not check whether the address is allowed: packages/sender
 * does.
 */
export const newSubscriptionSchema = z
  .strictObject({
    key: z
      .string()
      .regex(SUBSCRIPTION_KEY, 'Expected 1 to 64 letters, digits, ".", "_" or "-", the first one a letter or digit')
      .optional()
      .describe('A name of your own. Its id follows from it, so no two subscriptions have the same key'),
    url,
    event_types: eventTypes,
    environment: z.enum(SUBSCRIPTION_ENVIRONMENTS),
    description: description.optional(),
    secret: z.string().regex(OWN_SECRET, 'Expected 16 to 256 printable ASCII characters').optional(),
  })
  .meta({
    examples: [{ url: 'https://example.com/webhooks', event_types: ['session.approved'], environment: 'sandbox' }],
  });

/** The body of `PATCH /v1/subscriptions/{id}`. */
export const subscriptionPatchSchema = newSubscriptionSchema
  .omit({ secret: true, key: true })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'Expected at least one field to change')
  .meta({ examples: [{ description: 'Acme, onboarding' }] });

/** How long both secrets sign after a rotation, unless the caller says otherwise. */
const DEFAULT_OVERLAP = '24h';
const MAX_OVERLAP_MS = 30 * DAY_MS;

/** A duration in milliseconds. Unlike other durations, it may be 0. */
const overlapMs = z.string().transform((text, context) => {
  const ms = /^0(ms|s|m|h|d)$/.test(text) ? 0 : parseDurationMs(text);
  if (ms !== undefined && ms <= MAX_OVERLAP_MS) return ms;
  context.addIssue({ code: 'custom', message: 'Expected a number and ms, s, m, h or d, such as 24h; at most 30d' });
  return z.NEVER;
});

/** The body of `POST /v1/subscriptions/{id}/rotate-secret`. */
export const rotationSchema = z.strictObject({ overlap: overlapMs.prefault(DEFAULT_OVERLAP) });

/** The body of `POST /v1/subscriptions/{id}/test`. */
export const testDeliverySchema = z.strictObject({ environment: z.enum(ENVIRONMENTS).optional() });

/**
 * The largest `body` of a signature check, in characters: more than an event has with the default `MAX_EVENT_BYTES`.
 */
const MAX_CHECKED_CHARACTERS = 300_000;

/** The body of `POST /v1/subscriptions/{id}/check-signature`. */
export const signatureCheckRequestSchema = z
  .strictObject({
    header: z.string().min(1).max(4_096).describe('The value of Service-Signature as the receiver saw it'),
    body: z.string().max(MAX_CHECKED_CHARACTERS).describe('The body as the receiver saw it'),
    event_id: eventId.optional().describe('The value of Service-Event-Id, if the body does not show it'),
    received_at: instantMsSchema
      .optional()
      .describe("The receiver's time when the request arrived, to check its clock"),
  })
  .meta({ examples: [{ header: 't=1769860800,v1=5257a869…', body: '{"id":"evt_1","type":"session.approved"}' }] });
