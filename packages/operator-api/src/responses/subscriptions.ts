/** What the operator API returns about subscriptions and their addresses. */
import {
  ATTEMPT_ERRORS,
  eventTypeSchema,
  HEALTH_STATES,
  RESUME_OUTCOMES,
  STATUS_REASONS,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  VALIDATION_OUTCOMES,
} from '@posthorn/core';
import { z } from 'zod';
import { addressErrorSchema, cameBackFields, count, instant, listOf, pageOf } from './fields.ts';

const healthSchema = z
  .strictObject({
    state: z
      .enum(HEALTH_STATES)
      .describe(
        'From attempts. failing: 10 attempts in a row failed, or under half of the last 15 minutes succeeded (of 10 or more). It ends after 10 successes in a row, or with a success once half succeed',
      ),
    failing_since: instant.nullable(),
    failed_in_a_row: count.describe(
      'Failed attempts since the last successful one. An estimate: where several workers attempt, those within 2 s of that one may be missing',
    ),
    recent: z.strictObject({ attempts: count, succeeded: count }).describe('The last 15 minutes'),
    last_succeeded_at: instant.nullable(),
    error: addressErrorSchema.nullable().describe('The most frequent error since the address was last well'),
    verdict: z.string().nullable().describe('What is wrong, in a sentence; null if nothing is'),
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof healthSchema>;

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
    event_types: z.union([z.literal('all'), z.array(eventTypeSchema)]),
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

export const subscriptionsPageSchema = listOf(subscriptionSchema)
  .extend({ total: count.describe('Subscriptions that match, on all pages; those that can not be read included') })
  .meta({ id: 'SubscriptionsPage' });
export type SubscriptionsPage = z.infer<typeof subscriptionsPageSchema>;

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
