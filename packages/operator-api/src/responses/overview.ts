/** What the operator API returns about the whole installation, and about attempts over time. */
import { DELIVERY_STATUSES, STATUS_REASONS, SUBSCRIPTION_ENVIRONMENTS, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import { z } from 'zod';
import { addressErrorSchema, count, instant } from './fields.ts';
import { subscriptionSchema } from './subscriptions.ts';

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
