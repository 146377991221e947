/** What the operator API returns about erasures. */
import { ENVIRONMENTS, ERASURE_FIELDS, ERASURE_STATUSES, UNSENT_CHOICES } from '@posthorn/core';
import { z } from 'zod';
import { count, instant } from './fields.ts';

export const erasureSchema = z
  .strictObject({
    id: z.string(),
    field: z.enum(ERASURE_FIELDS).describe('What the value is'),
    value: z
      .string()
      .nullable()
      .describe(
        'Null as soon as nothing has to be looked for any more, and if no key in SECRET_ENCRYPTION_KEY opens it',
      ),
    value_hmac: z
      .string()
      .describe('A hash of field and value (HMAC-SHA-256) that stays as proof; the list finds it by the value'),
    environment: z.enum(ENVIRONMENTS).nullable().describe('Null: both'),
    status: z
      .enum(ERASURE_STATUSES)
      .describe(
        '`counting`: looks for events; `counted`: confirm or cancel it; `running`: erases; `waiting`: everything is found, some deliveries are to be sent first; `cancelled`: it was not confirmed, or was cancelled before its end, and `erased` says what was erased until then',
      ),
    unsent: z.enum(UNSENT_CHOICES).describe('What becomes of deliveries that have not ended'),
    found: z
      .strictObject({
        events: count,
        deliveries: count.describe('Replays included'),
        unsent: count.describe('Those that had not ended when the event was found'),
      })
      .describe('Final once counted, apart from events that are accepted later'),
    erased: z.strictObject({
      events: count,
      deliveries: count,
      ended: count.describe('Deliveries that it ended before they were sent'),
      responses: count.describe('Deliveries whose responses it deleted'),
    }),
    unreadable: z
      .strictObject({ events: count, ids: z.array(z.string()).describe('Of up to 20 of them') })
      .optional()
      .describe(
        'Stored events that can not be read, so each may have the value: they are tried again every minute, and it does not end before. Left out if there are none',
      ),
    operator: z.string(),
    confirmed_by: z.string().nullable(),
    created_at: instant,
    confirmed_at: instant.nullable(),
    finished_at: instant.nullable(),
  })
  .meta({ id: 'Erasure' });
export type Erasure = z.infer<typeof erasureSchema>;
