/** The events that Posthorn delivers (specification 2.1, 2.2 and 6). */

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
export type SessionEventType = (typeof SESSION_EVENT_TYPES)[number];

/** A session at the time of the event. */
export interface SessionSnapshot {
  id: string;
  status: string;
  reference?: string;
  /** Two uppercase letters. */
  country?: string;
  tier?: number;
  achieved_tier?: number;
  metadata?: Record<string, string>;
  [other: string]: unknown;
}

interface EventOf<Type extends string> {
  /** The same for every delivery of the event. Unique within its environment. */
  id: string;
  type: Type;
  /** ISO 8601, UTC, milliseconds, `Z`. */
  created_at: string;
  environment: 'sandbox' | 'production';
  data: SessionSnapshot;
}

/** A change of state of a session. */
export type SessionEvent = { [Type in SessionEventType]: EventOf<Type> }[SessionEventType];
/** A test delivery, which an operator sends. Its session does not exist. */
export type TestEvent = EventOf<'webhook.test'>;
export type WebhookEvent = SessionEvent | TestEvent;

/** Returns the event in a body, or undefined if there is none. A type that is newer than this package is accepted. */
export function parseEvent(body: Uint8Array): WebhookEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
  return isEvent(value) ? value : undefined;
}

function isEvent(value: unknown): value is WebhookEvent {
  if (!isRecord(value) || !isRecord(value.data)) return false;
  const texts = [value.id, value.type, value.created_at, value.environment, value.data.id];
  return texts.every((text) => typeof text === 'string' && text !== '');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
