/** The schema of the body that receivers get, for each event type (specification 2.1 and 6), with an example. */
import { z } from 'zod';
import { ENVIRONMENTS, type EventType, newTestEvent, sessionSnapshotSchema } from './event.ts';
import { EVENT_ID } from './ids.ts';

/** When events of each type are emitted, in the words of the specification. */
export const EMITTED_WHEN: Record<EventType, string> = {
  'session.created': 'The session has just been created.',
  'session.started': 'The customer opened the verification flow.',
  'session.submitted': 'The customer submitted their documents.',
  'session.in_review': 'A person is examining the case.',
  'session.approved': 'Identity verified.',
  'session.declined': 'Verification refused.',
  'session.resubmission_requested': 'Documents must be submitted again.',
  'session.expired': 'The link has expired.',
  'session.cancelled': 'The session was cancelled.',
  'webhook.test': 'A test delivery that an operator sends. Its session does not exist.',
};

const EXAMPLE_AT_MS = Date.UTC(2026, 0, 31, 12);

/** A delivered event of a type, as an example. */
function exampleOf(type: EventType): Record<string, unknown> {
  const { dataJson, createdAt } = newTestEvent('production', EXAMPLE_AT_MS);
  const status = type.split('.')[1] ?? '';
  const data = { ...JSON.parse(dataJson), ...(type === 'webhook.test' ? {} : { ...EXAMPLE_SESSION, status }) };
  return {
    id: 'evt_019c1234-5678-7abc-8def-0123456789ab',
    type,
    created_at: createdAt,
    environment: 'production',
    data,
  };
}

const EXAMPLE_SESSION = {
  id: '3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11',
  reference: 'order-1042',
  country: 'FR',
  tier: 2,
  achieved_tier: 2,
  metadata: { user_id: 'u_8731' },
};

/** The schema of the body of a delivery of this type. */
export function deliveredEventSchema(type: EventType) {
  return z
    .strictObject({
      id: z.string().regex(EVENT_ID).describe('The same in every delivery of the event; unique in its environment'),
      type: z.literal(type),
      created_at: z
        .string()
        .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        .describe('ISO 8601, UTC, milliseconds'),
      environment: z.enum(ENVIRONMENTS),
      data: sessionSnapshotSchema,
    })
    .meta({ title: type, description: EMITTED_WHEN[type], examples: [exampleOf(type)] });
}
