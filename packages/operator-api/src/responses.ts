/** What the operator API returns. The schemas have no transforms, so what they accept has the type that they infer. */
import {
  ATTEMPT_ERRORS,
  AUDIT_ACTIONS,
  DELIVERY_STATUSES,
  ENVIRONMENTS,
  ERASURE_FIELDS,
  ERASURE_STATUSES,
  EVENT_TYPES,
  EXPLANATIONS,
  FAILURE_REASONS,
  HEALTH_STATES,
  REPLAY_STATUSES,
  RESUME_OUTCOMES,
  SESSION_EVENT_TYPES,
  STATUS_REASONS,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  UNSENT_CHOICES,
  VALIDATION_OUTCOMES,
} from '@posthorn/core';
import { z } from 'zod';

const instant = z.iso.datetime();
const count = z.int().min(0);

const addressErrorSchema = z
  .strictObject({
    label: z.string().describe('The status code, or the error and its code: `500`, `timeout`, `dns ENOTFOUND`'),
    message: z
      .string()
      .nullable()
      .describe('The start of what the receiver sent with it, as one line of text; null if nothing was kept'),
    count,
    since: instant,
  })
  .meta({ id: 'AddressError' });

const healthSchema = z
  .strictObject({
    state: z
      .enum(HEALTH_STATES)
      .describe(
        'From attempts. failing: 10 attempts in a row failed, or under half of the last 15 minutes succeeded (of 10 or more). It ends after 10 successes in a row, or with a success once half succeed',
      ),
    failing_since: instant.nullable(),
    failed_in_a_row: count.describe('Failed attempts since the last successful one'),
    recent: z.strictObject({ attempts: count, succeeded: count }).describe('The last 15 minutes'),
    last_succeeded_at: instant.nullable(),
    error: addressErrorSchema.nullable().describe('The most frequent error since the address was last well'),
    verdict: z.string().nullable().describe('What is wrong, in a sentence; null if nothing is'),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof healthSchema>;

/** What came back. It comes from a stranger: show it as text only. */
const cameBackFields = {
  response: z
    .strictObject({
      headers: z
        .record(z.string(), z.string())
        .describe('content-type, content-encoding, retry-after, location, server and x-request-id, if there were any'),
      body: z
        .string()
        .describe('The beginning of the body as text, as far as it had arrived; empty if it is compressed'),
      body_truncated: z.boolean(),
    })
    .nullable()
    .describe(
      'Null if it was not kept, or if no response came. It is kept of the first and the last failed attempt, and for at most a day after a success. Lists of subscriptions leave it out.',
    ),
  connection: z
    .strictObject({
      ip: z.string().nullable().describe('The IP connected to, or tried last'),
      reused: z.boolean().describe('An earlier request had opened the connection'),
      dns_ms: count.nullable(),
      connect_ms: count.nullable(),
      tls_ms: count.nullable(),
      first_byte_ms: count.nullable().describe('From the request to the head of the response'),
      error_code: z.string().nullable().describe('For example ECONNREFUSED, ENOTFOUND, CERT_HAS_EXPIRED'),
      certificate: z.strictObject({ subject: z.string(), issuer: z.string(), valid_to: instant }).nullable(),
    })
    .nullable()
    .describe('Null if it was not kept; durations are null for steps that were not made or did not end'),
};

const validationSchema = z
  .strictObject({
    at: instant,
    outcome: z.enum(VALIDATION_OUTCOMES),
    status_code: z.int().nullable(),
    error: z
      .enum(ATTEMPT_ERRORS)
      .nullable()
      .describe('Why a delivery with this result would fail: an acceptable address may still respond with an error'),
    ...cameBackFields,
  })
  .meta({ id: 'Validation' });
export type Validation = z.infer<typeof validationSchema>;

export const subscriptionSchema = z
  .strictObject({
    id: z.string(),
    key: z.string().nullable().describe('The name chosen when it was created; null if none was'),
    url: z.string(),
    event_types: z.union([z.literal('all'), z.array(z.enum(SESSION_EVENT_TYPES))]),
    environment: z.enum(SUBSCRIPTION_ENVIRONMENTS),
    description: z.string(),
    status: z.enum(SUBSCRIPTION_STATUSES),
    status_reason: z.enum(STATUS_REASONS).nullable(),
    validated: z.boolean(),
    paused: z.boolean(),
    paused_since: instant
      .nullable()
      .describe('Null if it is not paused, or was paused by release 0.1.0. A resume that fails changes nothing.'),
    resuming: z
      .boolean()
      .describe(
        'After a resume: one held delivery is sent first, all others stay held until it succeeds. The status is active.',
      ),
    last_resume: z
      .strictObject({
        at: instant,
        outcome: z.enum(RESUME_OUTCOMES),
        delivery_id: z.string().nullable().describe('The delivery that is sent first; null if nothing was held'),
      })
      .nullable()
      .describe('The last resume; null if there was none since an operator or a validation last changed the status'),
    consecutive_failures: count,
    held_deliveries: count,
    parked_deliveries: count.describe('Unfinished deliveries that wait because all slots of the address are taken'),
    health: healthSchema,
    last_validation: validationSchema.nullable().describe('The newest validation of its url, and what came back'),
    previous_secret_until: instant
      .nullable()
      .describe('After a rotation: the time until which the previous secret signs too; null if it no longer does'),
    created_at: instant,
    updated_at: instant,
  })
  .meta({ id: 'Subscription' });
export type Subscription = z.infer<typeof subscriptionSchema>;

export const subscriptionWithSecretSchema = subscriptionSchema
  .extend({ secret: z.string().describe('The signing secret; shown this once') })
  .meta({ id: 'SubscriptionWithSecret' });
export type SubscriptionWithSecret = z.infer<typeof subscriptionWithSecretSchema>;

const deliveryFields = {
  id: z.string(),
  event_id: z.string(),
  event_type: z.enum(EVENT_TYPES),
  environment: z.enum(ENVIRONMENTS),
  subscription_id: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  attempt_count: count,
  max_attempts: count,
  next_attempt_at: instant.nullable(),
  replay_of: z.string().nullable().describe('The failed delivery that this one replays'),
  failure_reason: z.enum(FAILURE_REASONS).nullable(),
  created_at: instant,
  finished_at: instant.nullable(),
  replayable_until: instant.nullable().describe('Null also if its subscription was deleted, where it is read alone'),
  erased: z.boolean().describe('The payload of its event has been erased, and what came back from its attempts'),
};

export const deliverySchema = z.strictObject(deliveryFields).meta({ id: 'Delivery' });
export type Delivery = z.infer<typeof deliverySchema>;

export const deliveryWithAttemptsSchema = z
  .strictObject({
    ...deliveryFields,
    attempts: z.array(
      z.strictObject({
        number: z.int().min(1),
        started_at: instant,
        duration_ms: count,
        outcome: z.enum(['succeeded', 'failed']),
        status_code: z.int().nullable(),
        error: z.enum(ATTEMPT_ERRORS).nullable(),
        ...cameBackFields,
      }),
    ),
    replays: z.array(z.string()).describe("Ids of all replays of this delivery's event to its address, oldest first"),
  })
  .meta({ id: 'DeliveryWithAttempts' });
export type DeliveryWithAttempts = z.infer<typeof deliveryWithAttemptsSchema>;

export const requestSchema = z
  .strictObject({
    method: z.literal('POST'),
    url: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string().describe('The exact text of the body'),
  })
  .meta({ id: 'DeliveryRequest' });
export type DeliveryRequest = z.infer<typeof requestSchema>;

export const tailedAttemptSchema = z
  .strictObject({
    at: instant,
    delivery_id: z.string(),
    event_id: z.string(),
    event_type: z.enum(EVENT_TYPES),
    environment: z.enum(ENVIRONMENTS),
    subscription_id: z.string(),
    attempt: z.int().min(1),
    outcome: z.enum(['succeeded', 'failed']),
    status_code: z.int().nullable(),
    error: z.enum(ATTEMPT_ERRORS).nullable(),
    duration_ms: count,
    delivery_status: z.enum(DELIVERY_STATUSES),
  })
  .meta({ id: 'TailedAttempt' });
export type TailedAttempt = z.infer<typeof tailedAttemptSchema>;

export const listenedEventSchema = z
  .strictObject({
    id: z.string(),
    type: z.enum(EVENT_TYPES),
    created_at: instant,
    body: z.string().describe('The bytes that an attempt would send, to be signed as they are'),
  })
  .meta({ id: 'ListenedEvent' });
export type ListenedEvent = z.infer<typeof listenedEventSchema>;

const SIGNATURE_FINDINGS = [
  'malformed_header',
  'byte_order_mark',
  'trailing_newline',
  'surrounding_space',
  'line_endings',
  'quoted_body',
  'reserialized_body',
  'truncated_body',
  'changed_body',
  'unknown_signature',
  'previous_secret',
  'clock_off',
] as const;

export const signatureCheckSchema = z
  .strictObject({
    correct: z.boolean().describe('Whether a receiver that has the current secret accepts it'),
    secret: z.enum(['current', 'previous']).nullable().describe('The secret that signed it; null if unknown'),
    signed_at: instant.nullable().describe('The time in the header'),
    clock_off_s: z
      .int()
      .nullable()
      .describe("The receiver's time minus that of the signature, in seconds; null without received_at"),
    difference: z
      .strictObject({
        at: count.describe('Characters from the start of the body'),
        sent: z.string(),
        received: z.string(),
      })
      .nullable()
      .describe('The first difference from the body that was sent; null if there is none, or if that body is unknown'),
    findings: z
      .array(z.strictObject({ kind: z.enum(SIGNATURE_FINDINGS), message: z.string() }))
      .describe('Everything that is wrong, and what to do'),
  })
  .meta({ id: 'SignatureCheck' });
export type SignatureCheck = z.infer<typeof signatureCheckSchema>;

const traceId = z
  .string()
  .nullable()
  .describe('The trace that its attempts and replays belong to; null if it was accepted without one');

export const eventSchema = z
  .strictObject({
    id: z.string(),
    type: z.enum(EVENT_TYPES),
    created_at: instant,
    environment: z.enum(ENVIRONMENTS),
    data: z.record(z.string(), z.unknown()),
    accepted_at: instant,
    erased_at: instant.nullable().describe('When its payload was erased; `data` is empty then. Null: it was not'),
    also_in: z
      .array(z.enum(ENVIRONMENTS))
      .describe('Other environments that have an event with this id: ids are unique within an environment'),
    trace_id: traceId,
    deliveries: z.array(deliverySchema).describe('Up to 1,000, newest first; the list of deliveries has all'),
  })
  .meta({ id: 'Event' });
export type PublishedEvent = z.infer<typeof eventSchema>;

export const timelineSchema = z
  .strictObject({
    data: z
      .array(
        z.strictObject({
          id: z.string(),
          type: z.enum(EVENT_TYPES),
          environment: z.enum(ENVIRONMENTS),
          created_at: instant,
          accepted_at: instant,
          session_id: z.string(),
          session_status: z.string(),
          reference: z.string().nullable(),
          user_id: z.string().nullable(),
          trace_id: traceId,
          out_of_order: z.boolean().describe('It was accepted after a later event of its session'),
          deliveries: z.array(
            z.strictObject({
              ...deliveryFields,
              out_of_order: z.boolean().describe('It arrived after a later event of its session at the same address'),
            }),
          ),
          more_deliveries: z.boolean().describe('The event has more deliveries than are listed here'),
        }),
      )
      .describe('Newest first, by the time of acceptance'),
    has_more: z.boolean().describe('There are, or may be, older events that match'),
    search: z.enum(['on', 'off']).describe('off: new events are not indexed (EVENT_SEARCH)'),
  })
  .meta({ id: 'Timeline' });
export type Timeline = z.infer<typeof timelineSchema>;

export const explanationSchema = z
  .strictObject({
    event_id: z.string(),
    subscription_id: z.string(),
    reason: z.enum(EXPLANATIONS),
    answer: z.string().describe('What became of the event at this address, in a sentence or two'),
    next_step: z.string().nullable().describe('What an operator can do; null: nothing'),
    since: instant.nullable().describe('Since when it is so; null: not known'),
    due_at: instant.nullable().describe('When the next attempt is due; null: none is planned'),
    event: z
      .strictObject({
        type: z.enum(EVENT_TYPES),
        environment: z.enum(ENVIRONMENTS),
        accepted_at: instant,
        trace_id: traceId,
      })
      .nullable()
      .describe('Null: no such event is stored'),
    subscription: z
      .strictObject({
        url: z.string(),
        description: z.string(),
        status: z.enum(SUBSCRIPTION_STATUSES),
        status_reason: z.enum(STATUS_REASONS).nullable(),
      })
      .nullable()
      .describe('Null: there is no such subscription'),
    delivery: deliverySchema.nullable().describe('The newest delivery of the event to the address, replays included'),
  })
  .meta({ id: 'Explanation' });
export type Explanation = z.infer<typeof explanationSchema>;

const replayScopeFields = {
  from: instant.nullable().describe('Null: from the beginning'),
  to: instant,
  filter: z.strictObject({
    event_type: z.enum(EVENT_TYPES).nullable(),
    error: z.enum(FAILURE_REASONS).nullable(),
    failed_from: instant.nullable(),
    failed_to: instant.nullable(),
  }),
  canary: z.boolean().describe('Whether its first deliveries decide if it goes on'),
};

const replayProgressFields = {
  status: z
    .enum(REPLAY_STATUSES)
    .describe(
      '`canary`: waits for the outcome of its first deliveries; `halted`: one of them had a failed attempt, so continue or cancel it; `done`: all deliveries are made, and `outcome` says what became of them; `failed`: its subscription was deleted',
    ),
  total: count.describe('Failed deliveries found; at the end this is replayed + skipped'),
  replayed: count,
  skipped: count.describe(
    'Not replayed: another replay is in progress or has succeeded, the delivery failed too long ago, or its payload was erased',
  ),
  outcome: z
    .strictObject({
      delivered: count,
      failed: count.describe('Failed again'),
      cancelled: count.describe('Ended by the cancellation before their first attempt'),
      waiting: count.describe('Not ended: in the queue, in flight, held, or waiting for a retry'),
      unknown: count.describe('Made by an earlier version of Posthorn, which did not count'),
    })
    .describe('What became of the deliveries that were made; the sum is `replayed`'),
  operator: z.string(),
  created_at: instant,
  finished_at: instant.nullable().describe('When it stopped making deliveries'),
};

export const replaySchema = z
  .strictObject({
    id: z.string(),
    subscription_id: z.string(),
    batch_id: z
      .string()
      .nullable()
      .describe('The same for the replays of several addresses that were started together'),
    ...replayScopeFields,
    ...replayProgressFields,
  })
  .meta({ id: 'Replay' });
export type Replay = z.infer<typeof replaySchema>;

export const replayBatchSchema = z
  .strictObject({
    id: z.string(),
    addresses: count,
    ...replayScopeFields,
    ...replayProgressFields,
    replays: z.array(replaySchema).describe('Those that are started and still stored, in the order of the addresses'),
  })
  .describe('Bulk replays of several addresses that were started together; the counts are sums')
  .meta({ id: 'ReplayBatch' });
export type ReplayBatch = z.infer<typeof replayBatchSchema>;

/** What a start of bulk replays returns: one replay, or a batch for several addresses. */
export const startedReplaySchema = z.union([replaySchema, replayBatchSchema]);
export type StartedReplay = z.infer<typeof startedReplaySchema>;

/** What an operator should know before a bulk replay starts. */
const REPLAY_WARNINGS = ['not_active', 'same_error', 'failing', 'too_late', 'under_way'] as const;

const rehearsedCounts = {
  count: count.describe('Deliveries that would be replayed'),
  is_complete: z
    .boolean()
    .describe('False if there are more failed deliveries than were looked at: then there may be more'),
  canaries: count.describe('Deliveries that would be sent first'),
  expected_s: z
    .number()
    .min(0)
    .nullable()
    .describe('Seconds that sending would take if the address responds as before; null: unknown'),
};

export const rehearsalSchema = z
  .strictObject({
    ...rehearsedCounts,
    skipped: count,
    addresses: z.array(
      z.strictObject({
        subscription_id: z.string(),
        url: z.string(),
        description: z.string(),
        status: z.enum(SUBSCRIPTION_STATUSES),
        ...rehearsedCounts,
        skipped: count.describe('Failed deliveries that would not be replayed'),
        rate_per_s: z
          .number()
          .nullable()
          .describe(
            'Deliveries a second, from the mean duration of its attempts of 24 hours and the slots that it has; null: no attempt',
          ),
        warnings: z.array(z.strictObject({ kind: z.enum(REPLAY_WARNINGS), message: z.string() })),
      }),
    ),
  })
  .meta({ id: 'Rehearsal' });
export type Rehearsal = z.infer<typeof rehearsalSchema>;

export const failedDeliveriesSchema = z
  .strictObject({
    subscription_id: z.string(),
    count,
    is_complete: z.boolean().describe('False if there are too many to apply the filter to all: there may be more'),
  })
  .meta({ id: 'FailedDeliveries' });
export type FailedDeliveries = z.infer<typeof failedDeliveriesSchema>;

export const erasureSchema = z
  .strictObject({
    id: z.string(),
    field: z.enum(ERASURE_FIELDS).describe('What the value is'),
    value: z.string().nullable().describe('Null as soon as nothing has to be looked for any more'),
    value_hmac: z
      .string()
      .describe('A hash of field and value (HMAC-SHA-256) that stays as proof; the list finds it by the value'),
    environment: z.enum(ENVIRONMENTS).nullable().describe('Null: both'),
    status: z
      .enum(ERASURE_STATUSES)
      .describe(
        '`counting`: looks for events; `counted`: confirm or cancel it; `running`: erases; `waiting`: everything is found, some deliveries are to be sent first; `cancelled`: nothing was erased',
      ),
    unsent: z.enum(UNSENT_CHOICES).describe('What becomes of deliveries that have not ended'),
    found: z
      .strictObject({
        events: count,
        deliveries: count.describe('Replays included'),
        unsent: count.describe('Those that had not ended when the event was found'),
      })
      .describe('Final once counted, apart from events that are accepted later'),
    erased: z.strictObject({
      events: count,
      deliveries: count,
      ended: count.describe('Deliveries that it ended before they were sent'),
      responses: count.describe('Deliveries whose responses it deleted'),
    }),
    operator: z.string(),
    confirmed_by: z.string().nullable(),
    created_at: instant,
    confirmed_at: instant.nullable(),
    finished_at: instant.nullable(),
  })
  .meta({ id: 'Erasure' });
export type Erasure = z.infer<typeof erasureSchema>;

export const auditEntrySchema = z
  .strictObject({
    id: z.string(),
    at: instant,
    operator: z.string().nullable().describe('Null: Posthorn itself'),
    action: z.enum(AUDIT_ACTIONS),
    subscription_id: z.string().nullable(),
    delivery_id: z.string().nullable(),
    replay_id: z.string().nullable(),
    summary: z.string().describe('What was done, in plain words; times in it are in UTC'),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const sessionSchema = z
  .strictObject({
    operator: z.string(),
    operators: z.array(z.string()).describe('The names of all operators that have a token now'),
    csrf_token: z
      .string()
      .nullable()
      .describe('Send it as X-CSRF-Token; null if the call was authenticated by a token'),
    expires_at: instant.nullable(),
  })
  .meta({ id: 'Session' });
export type Session = z.infer<typeof sessionSchema>;

const percentiles = z.strictObject({ p50: count.nullable(), p99: count.nullable() });
const seriesSchema = z.array(z.strictObject({ from: instant, succeeded: count, failed: count }));
const attemptCounts = {
  attempts: count,
  succeeded: count,
  failed: count,
  success_rate: z.number().min(0).max(1).nullable(),
};

const attemptsSchema = z
  .strictObject({
    ...attemptCounts,
    attempt_ms: percentiles.describe('Durations of attempts'),
    arrival_ms: percentiles.describe('From the acceptance of an event to its successful attempt'),
    series: seriesSchema,
  })
  .meta({ id: 'Attempts' });

const addressSchema = z
  .strictObject({
    subscription_id: z.string(),
    url: z.string(),
    status: z.enum(SUBSCRIPTION_STATUSES),
    succeeded: count,
    failed: count,
    mean_ms: count.nullable(),
  })
  .meta({ id: 'AddressAttempts' });

export const addressAttemptsSchema = z
  .strictObject({
    subscription_id: z.string(),
    ...attemptCounts,
    mean_ms: count.nullable(),
    series: seriesSchema,
  })
  .meta({ id: 'SubscriptionAttempts' });
export type AddressAttempts = z.infer<typeof addressAttemptsSchema>;

const problemSchema = z
  .strictObject({
    subscription_id: z.string(),
    url: z.string(),
    description: z.string(),
    environment: z.enum(SUBSCRIPTION_ENVIRONMENTS),
    status: z.enum(SUBSCRIPTION_STATUSES),
    status_reason: z.enum(STATUS_REASONS).nullable(),
    failing_since: instant.nullable(),
    held: count,
    verdict: z.string().nullable(),
    error: addressErrorSchema.nullable(),
    incident: z.string().nullable().describe('The id of the incident that it belongs to'),
  })
  .meta({ id: 'AddressProblem' });

const incidentSchema = z
  .strictObject({
    id: z.string(),
    started_at: instant,
    addresses: count,
    subscription_ids: z.array(z.string()).describe('Up to 250'),
    error_label: z.string().nullable().describe('The error of most of them'),
    host: z.string().nullable().describe('The host of all of them; null if there are several'),
  })
  .meta({ id: 'Incident' });

export const overviewSchema = z
  .strictObject({
    at: instant,
    all_well: z
      .boolean()
      .describe(
        'No problem, workers run, reach receivers and have the time of Redis within 5 s, 95 % of the attempts of the last 15 minutes succeeded, and Redis takes writes and uses at most 85 % of its memory',
      ),
    why_not_well: z
      .array(z.string())
      .describe('What keeps `all_well` from being true, a phrase each; empty if it is true'),
    problems: z
      .strictObject({ total: count, items: z.array(problemSchema) })
      .describe('Failing and paused addresses: up to 50, the worst first'),
    incidents: z
      .array(incidentSchema)
      .describe('Three or more addresses that began to fail within minutes of each other, the newest first'),
    deliveries: z.record(z.enum(DELIVERY_STATUSES), count),
    subscriptions: z.record(z.enum(SUBSCRIPTION_STATUSES), count),
    queue: z.strictObject({
      waiting: count,
      active: count,
      delayed: count,
      failed: count,
      oldest_pending_age_ms: count.describe(
        'How long the oldest pending delivery has waited: since it was made or, if it was held, since its release; 0 if there is none',
      ),
    }),
    workers: z.array(
      z.strictObject({
        id: z.string(),
        host: z.string(),
        pid: z.int(),
        version: z.string(),
        concurrency: count,
        in_flight: count,
        started_at: instant,
        seen_at: instant,
        outage_since: instant
          .nullable()
          .describe('Start of the outage in which it reaches no address and makes no attempts; null if there is none'),
        clock_offset_ms: z.int().nullable().describe('Its clock minus that of Redis; null if it does not report it'),
      }),
    ),
    memory: z
      .strictObject({ used_bytes: count.nullable(), capacity_bytes: count.nullable() })
      .describe('What Redis uses and may use, all masters together; null if it does not say'),
    writes_refused: z.string().nullable().describe('Why Redis refuses writes, in its own words; null if it takes them'),
    last_hour: attemptsSchema.describe('Minute by minute'),
    last_day: attemptsSchema.describe('Hour by hour'),
    rules: z
      .strictObject({
        max_attempts: count,
        pause_after: count,
        retention_ms: count,
        retention_succeeded_ms: count,
        attempt_timeout_ms: count.nullable(),
        release_rate: count.nullable(),
      })
      .describe(
        'Attempts of a delivery, consecutive failures that pause an address, how long failed deliveries are kept and succeeded ones, time limit of an attempt, held and overdue deliveries released per second to one address',
      ),
    format: z
      .strictObject({
        current: count,
        newest: count,
        oldest_stored: count,
        waits_for: z.array(z.string()),
        raises_at: instant.nullable(),
      })
      .describe(
        'The stored format: in force, what it becomes after an upgrade, the oldest of any record; the running processes of the release before, and when it is raised if none comes back',
      ),
    addresses: z.strictObject({
      since: instant,
      most_failing: z.array(addressSchema),
      slowest: z.array(addressSchema),
      paused: z.array(subscriptionSchema).describe('Up to 10, newest first'),
    }),
  })
  .meta({ id: 'Overview' });
export type Overview = z.infer<typeof overviewSchema>;

/** A page of a list. */
export interface Page<T> {
  data: T[];
  /** Null on the last page. */
  next_cursor: string | null;
}
export function pageOf<S extends z.ZodType>(item: S) {
  return z.strictObject({ data: z.array(item), next_cursor: z.string().nullable() });
}

export const subscriptionsPageSchema = pageOf(subscriptionSchema)
  .extend({ total: count.describe('Subscriptions that match, on all pages') })
  .meta({ id: 'SubscriptionsPage' });
export type SubscriptionsPage = z.infer<typeof subscriptionsPageSchema>;

const resumeResultSchema = z
  .strictObject({
    subscription_id: z.string(),
    url: z.string().nullable(),
    result: z
      .enum(['resumed', 'unchanged', 'refused', 'not_found'])
      .describe('`unchanged`: it was not paused any more; `refused`: it has to be validated first'),
    detail: z.string().nullable().describe('Why it was refused'),
  })
  .meta({ id: 'ResumeResult' });
export type ResumeResult = z.infer<typeof resumeResultSchema>;

export const bulkResumeResultSchema = pageOf(resumeResultSchema).meta({ id: 'BulkResumeResult' });
export type BulkResumeResult = z.infer<typeof bulkResumeResultSchema>;

export const triedNowSchema = pageOf(z.string())
  .describe('The ids of the deliveries whose next attempt is due now')
  .meta({ id: 'TriedNow' });
export type TriedNow = z.infer<typeof triedNowSchema>;

const subscriptionNameSchema = z
  .strictObject({ id: z.string(), url: z.string(), description: z.string() })
  .meta({ id: 'SubscriptionName' });
export type SubscriptionName = z.infer<typeof subscriptionNameSchema>;

export const subscriptionNamesSchema = z
  .strictObject({
    data: z.array(subscriptionNameSchema).describe('In the order of the ids, without those that do not exist'),
  })
  .meta({ id: 'SubscriptionNames' });
export type SubscriptionNames = z.infer<typeof subscriptionNamesSchema>;
