/** What the operator API returns about deliveries and their attempts. */
import { ATTEMPT_ERRORS, DELIVERY_STATUSES, ENVIRONMENTS, eventTypeSchema } from '@posthorn/core';
import { z } from 'zod';
import { cameBackFields, count, deliveryFields, instant, pageOf } from './fields.ts';

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
    event_type: eventTypeSchema,
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

export const triedNowSchema = pageOf(z.string())
  .describe('The ids of the deliveries whose next attempt is due now')
  .meta({ id: 'TriedNow' });
export type TriedNow = z.infer<typeof triedNowSchema>;
