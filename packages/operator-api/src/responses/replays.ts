/** What the operator API returns about bulk replays. */
import { eventTypeSchema, FAILURE_REASONS, REPLAY_STATUSES, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import { z } from 'zod';
import { count, instant } from './fields.ts';

const replayScopeFields = {
  from: instant.nullable().describe('Null: from the beginning'),
  to: instant,
  filter: z.strictObject({
    event_type: eventTypeSchema.nullable(),
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
  total: count.describe(
    'Failed deliveries found, perhaps with some that are no longer kept; at the end this is replayed + skipped',
  ),
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
    count: count.describe('Without a filter, it may include some that are no longer kept'),
    is_complete: z.boolean().describe('False if there are too many to apply the filter to all: there may be more'),
  })
  .meta({ id: 'FailedDeliveries' });
export type FailedDeliveries = z.infer<typeof failedDeliveriesSchema>;
