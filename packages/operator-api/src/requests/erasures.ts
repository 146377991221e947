/** What the operator API accepts about erasures. */
import { ENVIRONMENTS, ERASURE_FIELDS, ERASURE_ID, UNSENT_CHOICES } from '@posthorn/core';
import { z } from 'zod';
import { eventId, page, searchFields } from './fields.ts';

export const erasureParamsSchema = z.object({ id: z.string().regex(ERASURE_ID) });

const erasureValues = {
  event_id: eventId.optional().describe('The id of an event'),
  ...searchFields,
};
const hasOneErasureValue = (given: { [field in (typeof ERASURE_FIELDS)[number]]?: unknown }) =>
  ERASURE_FIELDS.filter((field) => given[field] !== undefined).length === 1;
const unsent = z
  .enum(UNSENT_CHOICES)
  .describe(
    'What becomes of deliveries that have not ended. `end`: they end as failed; `deliver`: the payload is erased once all of them have ended',
  );

/** The body of `POST /v1/erasures`. */
export const newErasureSchema = z
  .strictObject({
    ...erasureValues,
    environment: z.enum(ENVIRONMENTS).optional().describe('Only events of this environment'),
    unsent: unsent.default('end'),
    confirm: z.boolean().default(false).describe('Erase at once. Without it, the events are counted first'),
  })
  .refine(hasOneErasureValue, {
    path: ['session_id'],
    message: `Expected exactly one of ${ERASURE_FIELDS.join(', ')}`,
  })
  .meta({ examples: [{ session_id: '3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11' }] });

/** The body of `POST /v1/erasures/{id}/confirm`. */
export const erasureConfirmationSchema = z.strictObject({
  unsent: unsent.optional().describe('As requested, unless it is given; see `POST /v1/erasures`'),
});

/** The query of `GET /v1/erasures`. */
export const erasuresQuerySchema = z
  .strictObject({ ...erasureValues, ...page })
  .refine((query) => ERASURE_FIELDS.every((field) => query[field] === undefined) || hasOneErasureValue(query), {
    path: ['session_id'],
    message: `Expected at most one of ${ERASURE_FIELDS.join(', ')}`,
  });
