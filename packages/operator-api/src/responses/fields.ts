/**
 * What the responses about several resources have in common. No schema of a response has transforms, so what it accepts
 * has the type that it infers.
 */
import { DELIVERY_STATUSES, ENVIRONMENTS, eventTypeSchema, FAILURE_REASONS } from '@posthorn/core';
import { z } from 'zod';

export const instant = z.iso.datetime();
export const count = z.int().min(0);

/** A page of a list. */
export interface Page<T> {
  data: T[];
  /** Null on the last page. */
  next_cursor: string | null;
}
/** A page of what a call has changed: it changes all, or fails. */
export function pageOf<S extends z.ZodType>(item: S) {
  return z.strictObject({ data: z.array(item), next_cursor: z.string().nullable() });
}

export const unreadable = z
  .array(z.string())
  .optional()
  .describe(
    'The ids of records that belong here and can not be read, so no filter is applied to them; left out if there are none. The log of the console says why (`records.unreadable`)',
  );

/** A page of a list that is shown. A record that can't be read hides no other one. */
export interface ListPage<T> extends Page<T> {
  unreadable?: string[] | undefined;
}
export function listOf<S extends z.ZodType>(item: S) {
  return pageOf(item).extend({ unreadable });
}

/** What came back. It comes from a stranger: show it as text only. */
export const cameBackFields = {
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

export const deliveryFields = {
  id: z.string(),
  event_id: z.string(),
  event_type: eventTypeSchema,
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

export const addressErrorSchema = z
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
