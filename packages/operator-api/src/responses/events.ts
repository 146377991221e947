/** What the operator API returns about events, and about what became of them. */
import { ENVIRONMENTS, EXPLANATIONS, eventTypeSchema, STATUS_REASONS, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import { z } from 'zod';
import { deliverySchema } from './deliveries.ts';
import { deliveryFields, instant, unreadable } from './fields.ts';

const traceId = z
  .string()
  .nullable()
  .describe('The trace that its attempts and replays belong to; null if it was accepted without one');

export const eventSchema = z
  .strictObject({
    id: z.string(),
    type: eventTypeSchema,
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
    unreadable,
  })
  .meta({ id: 'Event' });
export type PublishedEvent = z.infer<typeof eventSchema>;

export const listenedEventSchema = z
  .strictObject({
    id: z.string(),
    type: eventTypeSchema,
    created_at: instant,
    body: z.string().describe('The bytes that an attempt would send, to be signed as they are'),
  })
  .meta({ id: 'ListenedEvent' });
export type ListenedEvent = z.infer<typeof listenedEventSchema>;

export const timelineSchema = z
  .strictObject({
    data: z
      .array(
        z.strictObject({
          id: z.string(),
          type: eventTypeSchema,
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
    unreadable,
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
        type: eventTypeSchema,
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
