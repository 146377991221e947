/** What the operator API returns about the whole installation, and about attempts over time. */
import {
  DELIVERY_STATUSES,
  HEALTH_MINUTES,
  STATUS_REASONS,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
} from '@posthorn/core';
import { z } from 'zod';
import { addressErrorSchema, count, instant, unreadable } from './fields.ts';
import { subscriptionSchema } from './subscriptions.ts';

/** A count for each of these names. Documents name them, which they would not do for a record. */
const countsOf = <Name extends string>(names: readonly Name[]) =>
  z.strictObject(Object.fromEntries(names.map((name) => [name, count])) as Record<Name, typeof count>);

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
    arrival_ms: percentiles.describe(
      'From the acceptance of an event (of a replay: from its creation) to its successful attempt',
    ),
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

/** From where on not all is well. */
export const WELL_LIMITS = {
  /** Share of the attempts of the last `HEALTH_MINUTES` that have to succeed. */
  minSuccessRate: 0.95,
  /**
   * Above this share of its memory, Redis will be full soon; from then on ingest refuses events. The alerts have the
   * same.
   */
  maxMemoryShare: 0.85,
  /** A delivery that has waited this long for its first attempt means that the workers do not keep up. */
  longPendingMs: 60_000,
  /** The alert has the same. */
  maxClockOffsetMs: 5_000,
};

/** What can keep all from being well, with what each of them means. */
const notWellKinds = {
  writes_refused: 'Redis refuses writes',
  addresses: 'addresses fail or are paused',
  incident: 'addresses began to fail at once',
  no_worker: 'no worker is running',
  queue_paused: "someone has paused the queue with BullMQ's API",
  worker_outage: 'a worker reaches no address',
  worker_clock: `a worker's clock is more than ${WELL_LIMITS.maxClockOffsetMs / 1_000} s from that of Redis`,
  attempts: `less than ${100 * WELL_LIMITS.minSuccessRate} % of the attempts of the last ${HEALTH_MINUTES} minutes succeeded`,
  pending: `a delivery has waited ${WELL_LIMITS.longPendingMs / 1_000} s or longer for its first attempt`,
  eviction: 'Redis may evict keys',
  memory: `Redis uses more than ${100 * WELL_LIMITS.maxMemoryShare} % of its memory`,
};

const notWellSchema = z
  .strictObject({
    kind: z.enum(Object.keys(notWellKinds) as (keyof typeof notWellKinds)[]).describe(
      Object.entries(notWellKinds)
        .map(([kind, meaning]) => `\`${kind}\`: ${meaning}`)
        .join('; '),
    ),
    message: z.string(),
  })
  .meta({ id: 'NotWell' });
export type NotWell = z.infer<typeof notWellSchema>;

export const overviewSchema = z
  .strictObject({
    at: instant,
    all_well: z.boolean().describe('True if `not_well` is empty'),
    not_well: z.array(notWellSchema).describe('What keeps `all_well` from being true: its kind, and a phrase'),
    why_not_well: z.array(z.string()).describe('The phrases of `not_well`'),
    problems: z
      .strictObject({ total: count, items: z.array(problemSchema) })
      .describe('Failing and paused addresses: up to 50, the worst first'),
    incidents: z
      .array(incidentSchema)
      .describe('Three or more addresses that began to fail within minutes of each other, the newest first'),
    deliveries: countsOf(DELIVERY_STATUSES),
    subscriptions: countsOf(SUBSCRIPTION_STATUSES),
    queue: z.strictObject({
      waiting: count,
      active: count,
      delayed: count,
      failed: count,
      oldest_pending_age_ms: count.describe(
        'How long the oldest pending delivery has waited: since it was made or, if it was held, since its release; 0 if there is none. Where 100 or more in a partition were held, that of the 100 made first',
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
    last_hour: attemptsSchema.describe(
      'Minute by minute, by when workers report attempts: every 2 s. A worker that is killed takes what it has not reported with it',
    ),
    last_day: attemptsSchema.describe('Hour by hour'),
    rules: z
      .strictObject({
        max_attempts: count,
        pause_after: count,
        retention_ms: count,
        retention_succeeded_ms: count,
        attempt_timeout_ms: count.nullable(),
        release_rate: count.nullable(),
        min_success_rate: z.number(),
      })
      .describe(
        'Attempts of a delivery, consecutive failures that pause an address, how long failed deliveries are kept and succeeded ones, time limit of an attempt, held and overdue deliveries released per second to one address, share of attempts below which not all is well',
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
    unreadable,
  })
  .meta({ id: 'Overview' });
export type Overview = z.infer<typeof overviewSchema>;
