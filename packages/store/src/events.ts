/** Stores events: each once, with the subscriptions it was matched to, until its last delivery can't be replayed any more. */
import {
  ENVIRONMENTS,
  EVENT_TYPES,
  type Event,
  type EventRef,
  type EventType,
  eventIdOf,
  eventRef,
  partitionOf,
  type TraceContext,
  topicsOfEvent,
} from '@posthorn/core';
import { eventKey, fanningOutKey, partitionPrefix, topicKey } from './keys.ts';
import { isPacked, packData, unpackData } from './pack-data.ts';
import { readPartitions, type Store } from './store.ts';

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

/** The subscriptions, of all partitions, that an event matches now. Reads two sets per partition, whatever the number of subscriptions. */
export async function findMatches(
  store: Store,
  event: Pick<Event, 'environment'> & { type: EventType },
): Promise<string[]> {
  const topics = topicsOfEvent(event);
  return await readPartitions(store, (prefix) => store.redis.sunion(topics.map((topic) => topicKey(prefix, topic))));
}

/** Confirms that all deliveries of an event and their jobs are stored. */
export async function confirmFanOut(store: Store, event: EventRef): Promise<void> {
  await store.redis.zrem(fanningOutKey(prefixOfEvent(store, event)), event);
}

/** Events whose fan-out began before `beforeMs` and was never confirmed: their process died, or Redis was away. At most `limit` per partition. */
export async function interruptedFanOuts(store: Store, beforeMs: number, limit: number): Promise<EventRef[]> {
  const found = await readPartitions(store, (prefix) =>
    store.redis.zrangebyscore(fanningOutKey(prefix), '-inf', beforeMs, 'LIMIT', 0, limit),
  );
  return found as EventRef[];
}

/** An event by its reference, or undefined if it does not exist or has expired. */
export async function loadEvent(store: Store, event: EventRef): Promise<StoredEvent | undefined> {
  const text = await store.redis.get(eventKey(prefixOfEvent(store, event), event));
  return text === null ? undefined : decodeEvent(event, text);
}

/** Every stored event with this id: at most one in each environment. */
export async function findEvents(store: Store, eventId: string): Promise<StoredEvent[]> {
  const refs = [...ENVIRONMENTS.map((environment) => eventRef({ id: eventId, environment })), unscopedRef(eventId)];
  // All of them are in one partition, that of the id.
  const texts = await store.redis.mget(refs.map((ref) => eventKey(prefixOfEvent(store, ref), ref)));
  return refs.flatMap((ref, i) => (texts[i] ? [decodeEvent(ref, texts[i])] : []));
}

/** The reference of an event stored before ids were scoped to the environment. The last of them expires `RETENTION` after that upgrade. */
export function unscopedRef(eventId: string): EventRef {
  return eventId as EventRef;
}

/** The key prefix of the partition in which an event is stored. */
export function prefixOfEvent(store: Store, event: EventRef): string {
  return partitionPrefix(store, partitionOf(eventIdOf(event), store.partitions));
}

/** Keeps an event at least until `untilMs`; never shortens its life. */
export async function keepEvent(store: Store, event: EventRef, untilMs: number): Promise<void> {
  await store.redis.call('PEXPIREAT', eventKey(prefixOfEvent(store, event), event), untilMs, 'GT');
}

/** Keeps an event like `keepEvent`; returns whether it exists. */
export async function keepIfExists(store: Store, event: EventRef, untilMs: number): Promise<boolean> {
  await keepEvent(store, event, untilMs);
  return (await store.redis.exists(eventKey(prefixOfEvent(store, event), event))) === 1;
}

/** All ids of subscriptions begin with this, so it is not stored. */
const SUBSCRIPTION_PREFIX = 'sub_';
const BEFORE_TRACE = '~';

/**
 * One line of what is not in `data`, then `data` itself. The envelope of the body is rebuilt from it (core's `eventBody`):
 * that saves a third of the memory of a small event. With `packs`, `data` is packed, and the line is shorter; earlier versions can't read
 * such an event. The trace follows the time of acceptance, after a character that ends the number for versions that know no trace.
 */
export function encodeEvent(stored: StoredEvent, packs = false): string {
  const { event, acceptedAtMs, subscriptionIds, erasedAtMs, trace } = stored;
  const data = packs ? packData(event.dataJson) : event.dataJson;
  const createdAtMs = Date.parse(event.createdAt);
  const isShort = isPacked(data);
  const head = [
    encodeKind(event).toString(36),
    createdAtMs.toString(36),
    (isShort ? acceptedAtMs - createdAtMs : acceptedAtMs).toString(36) +
      (trace ? BEFORE_TRACE + encodeTrace(trace) : ''),
    subscriptionIds.map((id) => (isShort ? id.slice(SUBSCRIPTION_PREFIX.length) : id)).join(','),
    ...(erasedAtMs === undefined ? [] : [erasedAtMs.toString(36)]),
  ];
  return `${head.join(' ')}\n${data}`;
}

/** Reads what `encodeEvent` wrote, packed or not. */
export function decodeEvent(ref: EventRef, text: string): StoredEvent {
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
    ...(trace !== undefined && { trace: decodeTrace(trace) }),
  };
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/** A trace in 34 characters. */
function encodeTrace({ traceId, spanId, flags }: TraceContext): string {
  return Buffer.concat([Buffer.from(traceId + spanId, 'hex'), Buffer.of(flags)]).toString('base64url');
}

function decodeTrace(text: string): TraceContext {
  const bytes = Buffer.from(text, 'base64url');
  const flagsAt = TRACE_ID_BYTES + SPAN_ID_BYTES;
  return {
    traceId: bytes.toString('hex', 0, TRACE_ID_BYTES),
    spanId: bytes.toString('hex', TRACE_ID_BYTES, flagsAt),
    flags: bytes[flagsAt] ?? 0,
  };
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
