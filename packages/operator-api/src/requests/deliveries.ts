/** What the operator API accepts about deliveries and their attempts. */
import { DELIVERY_ID, DELIVERY_STATUSES, ENVIRONMENTS, eventTypeSchema, FAILURE_REASONS } from '@posthorn/core';
import { z } from 'zod';
import {
  cursorOf,
  documentedAs,
  EXAMPLE_SUBSCRIPTION_ID,
  eventId,
  inOrder,
  page,
  period,
  replayId,
  subscriptionId,
} from './fields.ts';

export const deliveryParamsSchema = z.object({ id: z.string().regex(DELIVERY_ID) });

/** Which deliveries a list has, whatever their status. */
const deliveryFilter = {
  subscription_id: subscriptionId.optional(),
  event_id: eventId.optional(),
  environment: z.enum(ENVIRONMENTS).optional(),
  event_type: eventTypeSchema.optional(),
  replay_id: replayId.optional().describe('Only the deliveries that this bulk replay made'),
  ...period,
};

/** The query of `GET /v1/deliveries`. */
export const deliveriesQuerySchema = inOrder(
  z.strictObject({
    ...deliveryFilter,
    status: z.enum(DELIVERY_STATUSES).optional(),
    error: z.enum(FAILURE_REASONS).optional().describe('The `failure_reason`; only failed ones have one'),
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
    limit: z.int().min(1).max(MAX_TRIED_NOW).default(MAX_TRIED_NOW).describe('Deliveries looked at'),
    cursor: cursorOf(200),
  }),
).meta({ examples: [{ subscription_id: EXAMPLE_SUBSCRIPTION_ID }] });

/** The query of `GET /v1/deliveries/{id}/request`. */
export const requestQuerySchema = z.strictObject({
  attempt: z
    .string()
    .regex(/^[1-9]\d?$/, 'Expected the number of an attempt')
    .transform(Number)
    .optional()
    .describe('The number of an attempt')
    .meta(documentedAs({ type: 'integer', minimum: 1, maximum: 99 })),
});

/** The query of `GET /v1/tail`. */
export const tailQuerySchema = z.strictObject({
  failed: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .describe('Only failed attempts')
    .meta(documentedAs({ type: 'boolean' })),
  subscription_id: subscriptionId.optional(),
  event_type: eventTypeSchema.optional(),
  environment: z.enum(ENVIRONMENTS).optional(),
});
