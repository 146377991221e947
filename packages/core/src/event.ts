/** The event: its types, what a publisher may send, and the bytes that every receiver gets. */
import { z } from 'zod';
import { EVENT_ID } from './ids.ts';
import { isRawNumber } from './json.ts';

/** The types a publisher may send, in the order of the specification, section 6. The order is stored: only append. */
export const SESSION_EVENT_TYPES = [
  'session.created',
  'session.started',
  'session.submitted',
  'session.in_review',
  'session.approved',
  'session.declined',
  'session.resubmission_requested',
  'session.expired',
  'session.cancelled',
] as const;
/** The type of a test delivery, made from the console alone. */
export const TEST_EVENT_TYPE = 'webhook.test';
export const EVENT_TYPES = [...SESSION_EVENT_TYPES, TEST_EVENT_TYPE] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The environments that produce events. The order is stored: only append. */
export const ENVIRONMENTS = ['sandbox', 'production'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** An event as accepted. `dataJson` is the compact JSON text of `data`, kept as text so that no byte of it can change. */
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

const integer = z.custom<number>((value) => isInteger(value), { error: 'Expected an integer' });
function isInteger(value: unknown): boolean {
  return Number.isInteger(value) || (isRawNumber(value) && /^-?\d+$/.test(JSON.stringify(value)));
}

/** The session snapshot, section 2.2 of the specification: `id` and `status` required, the rest of the right type when present. */
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
  metadata: z.record(z.string(), z.string()).optional(),
});

/** An ISO 8601 instant with a zone that Date can hold; years 0000 to 9999, so that its UTC form keeps 24 characters. */
const instant = z
  .string()
  .regex(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)$/i,
    'Expected an ISO 8601 instant with a zone',
  )
  .refine((text) => /^\d{4}-/.test(utcInstant(text) ?? ''), 'Not a real instant');

/** What a publisher may send (interface 3). Unknown top-level fields are refused. */
export const publishedEventSchema = z.strictObject({
  id: z.string().regex(EVENT_ID, 'Expected 1 to 128 of A-Z a-z 0-9 . _ : ~ -').optional(),
  type: z.enum(SESSION_EVENT_TYPES, {
    error: (issue) =>
      issue.input === TEST_EVENT_TYPE
        ? 'webhook.test is made from the console alone'
        : `Expected one of ${SESSION_EVENT_TYPES.join(', ')}`,
  }),
  created_at: instant.optional(),
  environment: z.enum(ENVIRONMENTS),
  data: sessionSnapshotSchema,
});
export type PublishedEvent = z.infer<typeof publishedEventSchema>;

/** The same instant in UTC with milliseconds and `Z`, or undefined where the text names no real instant (30 February, hour 25). */
export function utcInstant(text: string): string | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)$/i.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute] = match.slice(1, 6).map(Number) as [number, number, number, number, number];
  const second = Number(match[6] ?? 0);
  const millisecond = Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, Math.min(second, 59), millisecond);
  const real =
    local.getUTCMonth() === month - 1 && local.getUTCDate() === day && hour < 24 && minute < 60 && second <= 60;
  const offsetMs = zoneOffsetMs(match[8]!);
  return real && offsetMs !== undefined ? new Date(local.getTime() - offsetMs).toISOString() : undefined;
}

function zoneOffsetMs(zone: string): number | undefined {
  if (/^z$/i.test(zone)) return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(3).replace(':', '') || 0);
  if (hours > 23 || minutes > 59) return undefined;
  return (zone[0] === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
