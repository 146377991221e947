/** What the operator API accepts about events, and about what became of them. */
import { ENVIRONMENTS, SEARCH_FIELDS, SESSION_EVENT_TYPES } from '@posthorn/core';
import { z } from 'zod';
import { eventId, MAX_PAGE_LIMIT, page, searchFields, searchValue, subscriptionId } from './fields.ts';

export const eventParamsSchema = z.object({ id: eventId });

/** The query of `GET /v1/events/{id}`. */
export const eventQuerySchema = z.strictObject({ environment: z.enum(ENVIRONMENTS).optional() });

/** The query of `GET /v1/listen`. Publishers send no `webhook.test`. */
export const listenQuerySchema = z.strictObject({ event_type: z.enum(SESSION_EVENT_TYPES).optional() });

/** The parameters of which `GET /v1/timeline` takes exactly one. */
const SEARCH_PARAMETERS = ['q', ...SEARCH_FIELDS] as const;

/** The query of `GET /v1/timeline`. */
export const timelineQuerySchema = z
  .strictObject({
    q: searchValue.optional().describe('A session, reference or user id'),
    ...searchFields,
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
