/** An event as it is stored: a text of its own, or the text in a joint record. */
import {
  ENVIRONMENTS,
  EVENT_TYPES,
  type Event,
  type EventRef,
  eventIdOf,
  isJoint,
  isoInstant,
  type TraceContext,
} from '@posthorn/core';
import { UnreadableRecord } from '../decode-named.ts';
import type { EventRecord } from '../scripts.ts';
import { isPacked, packData, unpackData } from './pack-data.ts';
import { packTrace, StoredTrace } from './stored-trace.ts';

/** An event with what was decided when it was accepted. */
export interface StoredEvent {
  /** The name it is stored under. */
  ref: EventRef;
  event: Event;
  acceptedAtMs: number;
  /** The subscriptions it was matched to: a repeated publish goes to the same ones. */
  subscriptionIds: readonly string[];
  /** When its payload was erased: `dataJson` is `{}` then. */
  erasedAtMs?: number;
  /** The trace that it belongs to: its attempts and replays continue it. */
  trace?: TraceContext | undefined;
}

/** All ids of subscriptions begin with this, so it is not stored. */
const SUBSCRIPTION_PREFIX = 'sub_';
const BEFORE_TRACE = '~';

/**
 * One line of what is not in `data`, then `data` itself. The envelope of the body is rebuilt from it (core's
 * `eventBody`): that saves a third of the memory of a small event. If `data` can be packed, the line is shorter too.
 * The trace follows the time of acceptance, after a character that ends the number for versions that know no trace.
 */
export function encodeEvent(stored: StoredEvent): string {
  const { event, acceptedAtMs, subscriptionIds, erasedAtMs, trace } = stored;
  const data = packData(event.dataJson);
  const createdAtMs = Date.parse(event.createdAt);
  const isShort = isPacked(data);
  const head = [
    encodeKind(event).toString(36),
    createdAtMs.toString(36),
    (isShort ? acceptedAtMs - createdAtMs : acceptedAtMs).toString(36) + encodeTrace(trace),
    subscriptionIds.map((id) => (isShort ? id.slice(SUBSCRIPTION_PREFIX.length) : id)).join(','),
    ...(erasedAtMs === undefined ? [] : [erasedAtMs.toString(36)]),
  ];
  return `${head.join(' ')}\n${data}`;
}

/** The text of an event in a joint record: what is not in the fields of its only delivery, then `data`, packed. */
export function encodeJoint({ event, acceptedAtMs, erasedAtMs, trace }: StoredEvent): string {
  // Most publishers leave the time of creation to ingest.
  const offsetMs = event.createdAt === isoInstant(acceptedAtMs) ? 0 : acceptedAtMs - Date.parse(event.createdAt);
  const head = [offsetMs.toString(36) + encodeTrace(trace)];
  if (erasedAtMs !== undefined) head.push(erasedAtMs.toString(36));
  return `${head.join(' ')}\n${packData(event.dataJson)}`;
}

/** The text that erases an event, in the form it is stored in. */
export function encodeErased(stored: StoredEvent, erasedAtMs: number): string {
  const erased = { ...stored, event: { ...stored.event, dataJson: '{}' }, erasedAtMs };
  return isJoint(stored.ref) ? encodeJoint(erased) : encodeEvent(erased);
}

/** Reads an event as it is stored; undefined for a joint record without one. Throws `UnreadableRecord`. */
export function decodeEvent(ref: EventRef, stored: EventRecord): StoredEvent | undefined {
  try {
    return typeof stored === 'string' ? readText(ref, stored) : readJoint(ref, stored);
  } catch (error) {
    throw new UnreadableRecord('event', ref, error);
  }
}

/** Reads the event in a joint record: its text in the fields t1, t2…, and those that its delivery has too. */
function readJoint(ref: EventRef, record: Readonly<Record<string, string>>): StoredEvent | undefined {
  let text = record.t1 ?? '';
  for (let i = 2; record[`t${i}`] !== undefined; i++) text += record[`t${i}`];
  const end = text.indexOf('\n');
  if (end === -1) return undefined;
  const head = text.slice(0, end);
  const data = text.slice(end + 1);
  const erasedAt = head.indexOf(' ');
  const traceAt = head.indexOf(BEFORE_TRACE);
  const acceptedAtMs = Number(record.c);
  const { type, environment } = decodeKind(Number(record.k));
  const stored: StoredEvent = {
    ref,
    event: {
      id: eventIdOf(ref),
      type,
      environment,
      // The number ends where the trace or the time of an erasure begins.
      createdAt: isoInstant(acceptedAtMs - Number.parseInt(head, 36)),
      dataJson: isPacked(data) ? unpackData(data) : data,
    },
    acceptedAtMs,
    subscriptionIds: record.s === undefined ? [] : [record.s],
    trace: traceAt === -1 ? undefined : StoredTrace.read(head.slice(traceAt + 1, erasedAt === -1 ? end : erasedAt)),
  };
  if (erasedAt !== -1) stored.erasedAtMs = Number.parseInt(head.slice(erasedAt + 1), 36);
  return stored;
}

/** Reads what `encodeEvent` wrote, packed or not. */
function readText(ref: EventRef, text: string): StoredEvent {
  const end = text.indexOf('\n');
  const [kind = '', created = '', accepted = '', subscriptions = '', erased] = text.slice(0, end).split(' ');
  const data = text.slice(end + 1);
  const isShort = isPacked(data);
  const createdAtMs = Number.parseInt(created, 36);
  const subscriptionIds = subscriptions === '' ? [] : subscriptions.split(',');
  const [acceptedAt = '', trace] = accepted.split(BEFORE_TRACE);
  return {
    ref,
    event: {
      id: eventIdOf(ref),
      ...decodeKind(Number.parseInt(kind, 36)),
      createdAt: new Date(createdAtMs).toISOString(),
      dataJson: isShort ? unpackData(data) : data,
    },
    acceptedAtMs: Number.parseInt(acceptedAt, 36) + (isShort ? createdAtMs : 0),
    subscriptionIds: isShort ? subscriptionIds.map((id) => SUBSCRIPTION_PREFIX + id) : subscriptionIds,
    ...(erased !== undefined && { erasedAtMs: Number.parseInt(erased, 36) }),
    ...(trace !== undefined && { trace: StoredTrace.readToKeep(trace) }),
  };
}

/** A trace in 34 characters after one that begins it; nothing for none. */
function encodeTrace(trace: TraceContext | undefined): string {
  return trace === undefined ? '' : BEFORE_TRACE + packTrace(trace);
}

/** An event's type and environment as one small number. */
export function encodeKind(event: Pick<Event, 'type' | 'environment'>): number {
  return EVENT_TYPES.indexOf(event.type) * ENVIRONMENTS.length + ENVIRONMENTS.indexOf(event.environment);
}

export function decodeKind(kind: number): Pick<Event, 'type' | 'environment'> {
  const type = EVENT_TYPES[Math.floor(kind / ENVIRONMENTS.length)];
  const environment = ENVIRONMENTS[kind % ENVIRONMENTS.length];
  if (type === undefined || environment === undefined) throw new Error(`No event type has the stored number ${kind}`);
  return { type, environment };
}
