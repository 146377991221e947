/** The event: its types, what a publisher may send, and the bytes that every receiver gets. */
import { z } from 'zod';
import { isRawNumber } from './basics/json.ts';
import { instantSchema } from './basics/time.ts';
import { EVENT_ID, newEventId } from './ids.ts';

/** The type of a test delivery, which only the console makes. */
export const TEST_EVENT_TYPE = 'webhook.test';
/** Those of the specification, section 6. Their positions are stored: a new one goes to the end, behind the test. */
export const EVENT_TYPES = [
  'session.created',
  'session.started',
  'session.submitted',
  'session.in_review',
  'session.approved',
  'session.declined',
  'session.resubmission_requested',
  'session.expired',
  'session.cancelled',
  TEST_EVENT_TYPE,
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
/** Has a name in documents: generated clients have one type for it, and not one for each place. */
export const eventTypeSchema = z.enum(EVENT_TYPES).meta({ id: 'EventType' });
/** The types a publisher may send. */
export const SESSION_EVENT_TYPES = EVENT_TYPES.filter((type) => type !== TEST_EVENT_TYPE);

/**
 * The environments that produce events. Records store positions, and how many there are: one more needs a stored
 * format.
 */
export const ENVIRONMENTS = ['sandbox', 'production'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/**
 * An event as accepted. `dataJson` is the compact JSON text of `data`, kept as text so that no byte of it can change.
 */
export interface Event {
  id: string;
  type: EventType;
  /** ISO 8601, UTC, milliseconds, `Z` (specification 2.1). */
  createdAt: string;
  environment: Environment;
  dataJson: string;
}

/** The bytes of every attempt, every replay and every address: compact JSON, keys in a fixed order (interface 5). */
export function eventBody(event: Event): string {
  const { id, type, createdAt, environment, dataJson } = event;
  return `{"id":${JSON.stringify(id)},"type":"${type}","created_at":"${createdAt}","environment":"${environment}","data":${dataJson}}`;
}

/** How a number that a double would change or print otherwise is written if it is an integer: `2.0` and `2e3` too. */
const INTEGER = /^-?\d+(\.0+)?([eE]\+?\d+)?$/;
const integer = z
  .custom<number>((value) => isInteger(value), { error: 'Expected an integer' })
  .meta({ override: { type: 'integer' } });
function isInteger(value: unknown): boolean {
  if (!isRawNumber(value)) return Number.isInteger(value);
  const text = JSON.stringify(value);
  return INTEGER.test(text) && Number.isFinite(Number(text));
}

/**
 * A new event of a test delivery (specification 6): made from the console, for one address, with a snapshot that no
 * session has and that says so in its reference and its metadata.
 */
export function newTestEvent(environment: Environment, nowMs: number): Event {
  const snapshot: z.input<typeof sessionSnapshotSchema> = {
    id: '00000000-0000-4000-8000-000000000000',
    reference: 'sample',
    status: 'approved',
    country: 'FR',
    tier: 2,
    achieved_tier: 2,
    metadata: { user_id: 'sample', sample: 'true' },
  };
  return {
    id: newEventId(nowMs),
    type: TEST_EVENT_TYPE,
    createdAt: new Date(nowMs).toISOString(),
    environment,
    dataJson: JSON.stringify(snapshot),
  };
}

/** Wrong values of `metadata` that are reported one by one; the rest is only counted. */
const MAX_METADATA_ERRORS = 20;

/** What zod's own record would check, but with a bounded number of issues: making each costs more than finding it. */
const metadata = z
  .unknown()
  .superRefine((value, context) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) {
      context.addIssue({ code: 'custom', message: 'Expected an object' });
      return;
    }
    let wrong = 0;
    for (const key of Object.keys(value)) {
      if (typeof (value as Record<string, unknown>)[key] === 'string') continue;
      wrong += 1;
      if (wrong <= MAX_METADATA_ERRORS) context.addIssue({ code: 'custom', path: [key], message: 'Expected a string' });
    }
    const more = wrong - MAX_METADATA_ERRORS;
    if (more > 0) context.addIssue({ code: 'custom', message: 'More values are wrong', params: { more } });
  })
  .meta({ override: { type: 'object', additionalProperties: { type: 'string' } } });

/**
 * The session snapshot, section 2.2 of the specification: `id` and `status` required, the rest of the right type when
 * present.
 */
export const sessionSnapshotSchema = z.looseObject({
  id: z.string().min(1).max(256).describe('Session identifier'),
  status: z.string().min(1).max(128).describe('Session status at the time of the event'),
  reference: z.string().optional(),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/, 'Expected two uppercase letters')
    .optional(),
  tier: integer.optional(),
  achieved_tier: integer.optional(),
  metadata: metadata.optional(),
});

/** A valid event, for documents. */
export const EXAMPLE_EVENT = {
  type: 'session.approved',
  environment: 'sandbox',
  data: { id: '3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11', status: 'approved', metadata: { user_id: 'u_8731' } },
};

/** What a publisher may send (interface 3). Unknown top-level fields are refused. */
export const publishedEventSchema = z
  .strictObject({
    id: z
      .string()
      .regex(EVENT_ID, 'Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -')
      .refine((id) => id !== '.' && id !== '..', 'Must not be . or .. because URLs cannot contain them as a segment')
      .optional()
      .describe('Unique within the environment. Without one Posthorn makes one, and a repeated call is another event'),
    type: z.enum(SESSION_EVENT_TYPES, {
      error: (issue) =>
        issue.input === TEST_EVENT_TYPE
          ? 'webhook.test is made from the console alone'
          : `Expected one of ${SESSION_EVENT_TYPES.join(', ')}`,
    }),
    created_at: instantSchema.optional().describe('The time of its acceptance, if absent'),
    environment: z.enum(ENVIRONMENTS),
    data: sessionSnapshotSchema,
  })
  .meta({ examples: [EXAMPLE_EVENT] });
