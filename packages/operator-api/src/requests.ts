/** What the operator API accepts: parameters of paths, queries and bodies. */
import {
  AUDIT_ACTIONS,
  AUDIT_ACTORS,
  CANARY_DELIVERIES,
  DELIVERY_ID,
  DELIVERY_STATUSES,
  ENVIRONMENTS,
  ERASURE_FIELDS,
  ERASURE_ID,
  EVENT_ID,
  EVENT_TYPES,
  FAILURE_REASONS,
  HEALTH_STATES,
  instantMsSchema,
  MAX_BATCH_ADDRESSES,
  OWN_SECRET,
  parseDurationMs,
  REPLAY_BATCH_ID,
  REPLAY_ID,
  SEARCH_FIELDS,
  SESSION_EVENT_TYPES,
  type StatusReason,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_ID,
  SUBSCRIPTION_KEY,
  SUBSCRIPTION_SORTS,
  SUBSCRIPTION_STATUSES,
  UNSENT_CHOICES,
} from '@posthorn/core';
import { z } from 'zod';

const subscriptionId = z.string().regex(SUBSCRIPTION_ID, 'Expected the id of a subscription');
const replayId = z.string().regex(REPLAY_ID, 'Expected the id of a bulk replay');
const eventId = z.string().regex(EVENT_ID, 'Expected the id of an event');

export const subscriptionParamsSchema = z.object({ id: subscriptionId });
export const deliveryParamsSchema = z.object({ id: z.string().regex(DELIVERY_ID) });
export const eventParamsSchema = z.object({ id: eventId });
export const replayParamsSchema = z.object({ id: z.string().regex(REPLAY_ID) });
export const replayBatchParamsSchema = z.object({ id: z.string().regex(REPLAY_BATCH_ID) });

/** A period in milliseconds since 1970, both ends included. */
const period = { from: instantMsSchema.optional(), to: instantMsSchema.optional() };

/** Refuses a period that ends before it begins: nothing would match it. */
function inOrder<S extends z.ZodType<Period>>(schema: S): S {
  return schema
    .refine(({ from, to }) => isBefore(from, to), {
      path: ['to'],
      message: 'Expected an instant that is not before from',
    })
    .refine(({ failed_from: from, failed_to: to }) => isBefore(from, to), {
      path: ['failed_to'],
      message: 'Expected an instant that is not before failed_from',
    });
}
type Period = { [name in 'from' | 'to' | 'failed_from' | 'failed_to']?: number | undefined };
const isBefore = (from: number | undefined, to: number | undefined) =>
  from === undefined || to === undefined || from <= to;

/** Which failed deliveries a bulk replay covers. */
const replayScope = {
  ...period,
  event_type: z.enum(EVENT_TYPES).optional(),
  error: z.enum(FAILURE_REASONS).optional().meta({ description: 'The `failure_reason` of the failed deliveries' }),
  failed_from: instantMsSchema.optional().meta({ description: 'Failed at or after' }),
  failed_to: instantMsSchema.optional().meta({ description: 'Failed at or before' }),
};

const DEFAULT_PAGE_LIMIT = 50;
/** The largest `limit` of a list. */
export const MAX_PAGE_LIMIT = 250;
const EXPECTED_LIMIT = `Expected a whole number from 1 to ${MAX_PAGE_LIMIT}`;

const cursorOf = (maxLength: number) =>
  z.string().max(maxLength).optional().meta({ description: 'The `next_cursor` of the previous page' });

/** The parameters that every list has. */
const page = {
  limit: z
    .string()
    .regex(/^\d{1,4}$/, EXPECTED_LIMIT)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MAX_PAGE_LIMIT, EXPECTED_LIMIT)
    .default(DEFAULT_PAGE_LIMIT)
    .meta({ description: `Items per page, 1 to ${MAX_PAGE_LIMIT}` }),
  cursor: cursorOf(200),
};

/** The query of `GET /v1/subscriptions`. */
export const subscriptionsQuerySchema = z.strictObject({
  q: z.string().max(200).optional().meta({
    description: 'Words that each occur in the url or the description, or begin the id, in upper or lower case',
  }),
  status: z.enum(SUBSCRIPTION_STATUSES).optional(),
  environment: z.enum(SUBSCRIPTION_ENVIRONMENTS).optional(),
  health: z.enum(HEALTH_STATES).optional().meta({ description: 'The `state` of its health' }),
  sort: z.enum(SUBSCRIPTION_SORTS).default('newest').meta({
    description:
      '`url` sorts by the address without its scheme. `worst` begins with the failing ones: those with the most failed attempts (by powers of ten) first, then those that have failed longest. Paused ones follow, then all others.',
  }),
  ...page,
  // It contains the beginning of an address.
  cursor: cursorOf(1_000),
});

/** The most addresses of one bulk resume. */
export const MAX_RESUMED = 250;
/** Why an address may be paused; `unreachable`, if it was validated meanwhile. */
export const PAUSE_REASONS = ['consecutive_failures', 'operator', 'unreachable'] as const satisfies StatusReason[];

const { q, environment, health } = subscriptionsQuerySchema.shape;

/** The body of `POST /v1/subscriptions/resume`. */
export const bulkResumeSchema = z
  .strictObject({
    subscription_ids: z
      .array(subscriptionId)
      .min(1)
      .max(MAX_RESUMED)
      .optional()
      .meta({ description: `1 to ${MAX_RESUMED} addresses; or all of one \`status_reason\`` }),
    status_reason: z
      .enum(PAUSE_REASONS)
      .optional()
      .meta({ description: 'The addresses that are paused for this reason' }),
    q,
    environment,
    health,
    limit: z.int().min(1).max(MAX_RESUMED).default(MAX_RESUMED).meta({ description: 'Paused addresses looked at' }),
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
  });

/** The most ids of one lookup. */
export const MAX_LOOKUP_IDS = 250;

/** The query of `GET /v1/subscriptions/lookup`. */
export const lookupQuerySchema = z.strictObject({
  ids: z
    .string()
    .transform((ids) => ids.split(','))
    .pipe(z.array(subscriptionId).max(MAX_LOOKUP_IDS))
    .meta({ description: `Up to ${MAX_LOOKUP_IDS} ids, separated by commas` }),
});

/** The query of `GET /v1/subscriptions/{id}/failed-deliveries`. */
export const failedDeliveriesQuerySchema = inOrder(z.strictObject(replayScope));

/** Which deliveries a list has, whatever their status. */
const deliveryFilter = {
  subscription_id: subscriptionId.optional(),
  event_id: eventId.optional(),
  environment: z.enum(ENVIRONMENTS).optional(),
  event_type: z.enum(EVENT_TYPES).optional(),
  replay_id: replayId.optional().meta({ description: 'Only the deliveries that this bulk replay made' }),
  ...period,
};

/** The query of `GET /v1/deliveries`. */
export const deliveriesQuerySchema = inOrder(
  z.strictObject({
    ...deliveryFilter,
    status: z.enum(DELIVERY_STATUSES).optional(),
    error: z.enum(FAILURE_REASONS).optional().meta({ description: 'The `failure_reason`; only failed ones have one' }),
    ...page,
  }),
).refine(({ error, status = 'failed' }) => error === undefined || status === 'failed', {
  path: ['status'],
  message: 'Expected failed, or none, together with error: no other delivery has a failure_reason',
});

/** The most deliveries of one call that tries them now. */
const MAX_TRIED_NOW = 250;

/** The body of `POST /v1/deliveries/try-now`. */
export const tryNowSchema = inOrder(
  z.strictObject({
    ...deliveryFilter,
    limit: z.int().min(1).max(MAX_TRIED_NOW).default(MAX_TRIED_NOW).meta({ description: 'Deliveries looked at' }),
    cursor: cursorOf(200),
  }),
);

/** The query of `GET /v1/deliveries/{id}/request`. */
export const requestQuerySchema = z.strictObject({
  attempt: z
    .string()
    .regex(/^[1-9]\d?$/, 'Expected the number of an attempt')
    .transform(Number)
    .optional(),
});

/** The query of `GET /v1/tail`. */
export const tailQuerySchema = z.strictObject({
  failed: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional(),
  subscription_id: subscriptionId.optional(),
  event_type: z.enum(EVENT_TYPES).optional(),
  environment: z.enum(ENVIRONMENTS).optional(),
});

/** The query of `GET /v1/listen`. */
export const listenQuerySchema = z.strictObject({ event_type: z.enum(EVENT_TYPES).optional() });

/** The query of `GET /v1/events/{id}`. */
export const eventQuerySchema = z.strictObject({ environment: z.enum(ENVIRONMENTS).optional() });

const searchValue = z.string().min(1).max(2_000);
/** The parameters of which `GET /v1/timeline` takes exactly one. */
const SEARCH_PARAMETERS = ['q', ...SEARCH_FIELDS] as const;

/** The query of `GET /v1/timeline`. */
export const timelineQuerySchema = z
  .strictObject({
    q: searchValue.optional().describe('A session, reference or user id'),
    session_id: searchValue.optional().describe('`data.id`'),
    reference: searchValue.optional().describe('`data.reference`'),
    user_id: searchValue.optional().describe('`data.metadata.user_id`'),
    environment: z.enum(ENVIRONMENTS).optional(),
    limit: page.limit.describe(`The newest events, 1 to ${MAX_PAGE_LIMIT}`),
  })
  .refine((query) => SEARCH_PARAMETERS.filter((name) => query[name] !== undefined).length === 1, {
    path: ['session_id'],
    message: `Expected exactly one of ${SEARCH_PARAMETERS.join(', ')}`,
  });

/** The query of `GET /v1/explain`. */
export const explainQuerySchema = z.strictObject({
  event_id: eventId,
  subscription_id: subscriptionId,
  environment: z.enum(ENVIRONMENTS).optional().describe('Needed only if both environments have an event with this id'),
});

/** The query of `GET /v1/replays`. */
export const replaysQuerySchema = z.strictObject({
  subscription_id: subscriptionId.optional(),
  batch_id: z
    .string()
    .regex(REPLAY_BATCH_ID, 'Expected the id of a batch of bulk replays')
    .optional()
    .meta({ description: 'Only the replays of this batch' }),
  ...page,
});

/** An id that Posthorn made: a prefix that says of what, and the rest. */
const AUDIT_TARGET = /^[a-z]{3}_[\w-]{1,100}$/;

/** The query of `GET /v1/audit`. */
export const auditQuerySchema = inOrder(
  z.strictObject({
    subscription_id: subscriptionId.optional(),
    operator: z.string().max(64).optional().meta({ description: 'The name of an operator' }),
    actor: z
      .enum(AUDIT_ACTORS)
      .optional()
      .meta({ description: '`posthorn`: only what Posthorn did by itself; `operator`: only what operators did' }),
    action: z.enum(AUDIT_ACTIONS).optional(),
    target: z
      .string()
      .regex(AUDIT_TARGET, 'Expected the id of a subscription, a delivery, a bulk replay or an erasure')
      .optional()
      .meta({ description: 'The id of a subscription, a delivery, a bulk replay or an erasure that the entry names' }),
    ...period,
    ...page,
  }),
);

/** Redis has text in UTF-8, which has no halves of surrogate pairs: what is stored would not be what was sent. */
const storedText = z.string().refine((text) => text.isWellFormed(), 'Expected text without half of a surrogate pair');
/** They come with text that is copied, and nobody sees why the receiver's path is not found. `checkUrl` refuses those of Latin-1. */
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
      .array(z.enum(SESSION_EVENT_TYPES))
      .min(1)
      .transform((types) => SESSION_EVENT_TYPES.filter((type) => types.includes(type))),
  ],
  { error: `Expected "all" or a non-empty list of ${SESSION_EVENT_TYPES.join(', ')}` },
);

/** The body of `POST /v1/subscriptions` (interface 4). It does not check whether the address is allowed: packages/sender does. */
export const newSubscriptionSchema = z.strictObject({
  key: z
    .string()
    .regex(SUBSCRIPTION_KEY, 'Expected 1 to 64 letters, digits, ".", "_" or "-", the first one a letter or digit')
    .optional()
    .meta({ description: 'A name of your own. Its id follows from it, so no two subscriptions have the same key' }),
  url,
  event_types: eventTypes,
  environment: z.enum(SUBSCRIPTION_ENVIRONMENTS),
  description: description.optional(),
  secret: z.string().regex(OWN_SECRET, 'Expected 16 to 256 printable ASCII characters').optional(),
});

/** The body of `PATCH /v1/subscriptions/{id}`. */
export const subscriptionPatchSchema = newSubscriptionSchema
  .omit({ secret: true, key: true })
  .partial()
  .refine((patch) => Object.keys(patch).length > 0, 'Expected at least one field to change');

/** How long both secrets sign after a rotation, unless the caller says otherwise. */
const DEFAULT_OVERLAP = '24h';
const MAX_OVERLAP_MS = 30 * 86_400_000;

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

/** The largest `body` of a signature check, in characters: more than an event has with the default `MAX_EVENT_BYTES`. */
const MAX_CHECKED_CHARACTERS = 300_000;

/** The body of `POST /v1/subscriptions/{id}/check-signature`. */
export const signatureCheckRequestSchema = z.strictObject({
  header: z.string().min(1).max(4_096).describe('The value of Service-Signature as the receiver saw it'),
  body: z.string().max(MAX_CHECKED_CHARACTERS).describe('The body as the receiver saw it'),
  event_id: eventId.optional().describe('The value of Service-Event-Id, if the body does not show it'),
  received_at: instantMsSchema.optional().describe("The receiver's time when the request arrived, to check its clock"),
});

/** Which deliveries of which addresses are replayed: the body of `POST /v1/replays` and of `POST /v1/replays/rehearse`. */
export const newReplaySchema = inOrder(
  z.strictObject({
    subscription_id: subscriptionId.optional().meta({ description: 'The address; or several in `subscription_ids`' }),
    subscription_ids: z
      .array(subscriptionId)
      .min(1)
      .max(MAX_BATCH_ADDRESSES)
      .optional()
      .meta({ description: `1 to ${MAX_BATCH_ADDRESSES} addresses: one bulk replay of each, started together` }),
    ...replayScope,
    canary: z
      .boolean()
      .default(false)
      .meta({
        description: `Send ${CANARY_DELIVERIES} deliveries of each address first, and go on only when all of them have arrived`,
      }),
  }),
).superRefine(({ subscription_id: one, subscription_ids: several = [] }, context) => {
  const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
  if ((one === undefined) === (several.length === 0))
    refuse(['subscription_id'], 'Expected either subscription_id or subscription_ids');
  for (const [i, id] of several.entries()) {
    const first = several.indexOf(id);
    if (first < i) refuse(['subscription_ids', i], `The same as subscription_ids.${first}`);
  }
});

export const erasureParamsSchema = z.object({ id: z.string().regex(ERASURE_ID) });

const erasureValues = {
  event_id: eventId.optional().describe('The id of an event'),
  session_id: searchValue.optional().describe('`data.id`'),
  reference: searchValue.optional().describe('`data.reference`'),
  user_id: searchValue.optional().describe('`data.metadata.user_id`'),
};
const hasOneErasureValue = (given: { [field in (typeof ERASURE_FIELDS)[number]]?: unknown }) =>
  ERASURE_FIELDS.filter((field) => given[field] !== undefined).length === 1;
const unsent = z
  .enum(UNSENT_CHOICES)
  .default('end')
  .describe(
    'What becomes of deliveries that have not ended. `end`: they end as failed; `deliver`: the payload is erased once all of them have ended',
  );

/** The body of `POST /v1/erasures`. */
export const newErasureSchema = z
  .strictObject({
    ...erasureValues,
    environment: z.enum(ENVIRONMENTS).optional().describe('Only events of this environment'),
    unsent,
    confirm: z.boolean().default(false).describe('Erase at once. Without it, the events are counted first'),
  })
  .refine(hasOneErasureValue, {
    path: ['session_id'],
    message: `Expected exactly one of ${ERASURE_FIELDS.join(', ')}`,
  });

/** The body of `POST /v1/erasures/{id}/confirm`. */
export const erasureConfirmationSchema = z.strictObject({ unsent });

/** The query of `GET /v1/erasures`. */
export const erasuresQuerySchema = z
  .strictObject({ ...erasureValues, ...page })
  .refine((query) => ERASURE_FIELDS.every((field) => query[field] === undefined) || hasOneErasureValue(query), {
    path: ['session_id'],
    message: `Expected at most one of ${ERASURE_FIELDS.join(', ')}`,
  });

/** The body of `POST /v1/session`. */
export const signInSchema = z.strictObject({ token: z.string().min(1).max(1_024) });
