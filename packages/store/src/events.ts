/** Keeps events: each once, with the list of subscriptions it was matched to, until its last delivery can't be replayed any more. */
import { ENVIRONMENTS, EVENT_TYPES, type Event, type EventType, partitionOf, topicsOfEvent } from '@posthorn/core';
import { eventKey, fanningOutKey, topicKey } from './keys.ts';
import { allPartitions, baseOf, type Store } from './store.ts';

/** An event with what was settled when it was accepted. */
export interface StoredEvent {
  event: Event;
  acceptedAtMs: number;
  /** The subscriptions it was matched to: a repeated publish goes to the same ones. */
  subscriptionIds: string[];
}

/** The subscriptions that listen for this event now, in all partitions: two sets a partition, whatever the number of subscriptions. */
export async function findMatches(
  store: Store,
  event: Pick<Event, 'environment'> & { type: EventType },
): Promise<string[]> {
  const topics = topicsOfEvent(event);
  const found = await Promise.all(
    allPartitions(store).map((partition) => {
      const base = baseOf(store, partition);
      return store.redis.sunion(topics.map((topic) => topicKey(base, topic)));
    }),
  );
  return found.length === 1 ? found[0]! : found.flat();
}

/** Notes that all deliveries of an event and their jobs are stored. */
export async function confirmFanOut(store: Store, eventId: string): Promise<void> {
  await store.redis.zrem(fanningOutKey(baseOf(store, partitionOf(eventId, store.partitions))), eventId);
}

/** Events whose fan-out began before `beforeMs` and was never confirmed: their process died, or Redis was away. At most `limit` a partition. */
export async function interruptedFanOuts(store: Store, beforeMs: number, limit: number): Promise<string[]> {
  const found = await Promise.all(
    allPartitions(store).map((partition) =>
      store.redis.zrangebyscore(fanningOutKey(baseOf(store, partition)), '-inf', beforeMs, 'LIMIT', 0, limit),
    ),
  );
  return found.flat();
}

/** An event by its id, or undefined where there is none (any more). */
export async function loadEvent(store: Store, eventId: string): Promise<StoredEvent | undefined> {
  const text = await store.redis.get(eventKey(baseOf(store, partitionOf(eventId, store.partitions)), eventId));
  return text === null ? undefined : decodeEvent(eventId, text);
}

/** Keeps an event at least until `untilMs`; never shortens its life. */
export async function keepEvent(store: Store, eventId: string, untilMs: number): Promise<void> {
  await store.redis.call(
    'PEXPIREAT',
    eventKey(baseOf(store, partitionOf(eventId, store.partitions)), eventId),
    untilMs,
    'GT',
  );
}

/** Keeps an event like `keepEvent`; answers whether it is there. */
export async function keepIfThere(store: Store, eventId: string, untilMs: number): Promise<boolean> {
  await keepEvent(store, eventId, untilMs);
  const key = eventKey(baseOf(store, partitionOf(eventId, store.partitions)), eventId);
  return (await store.redis.exists(key)) === 1;
}

/**
 * One line of what is not in `data`, then `data` itself. The envelope of the body is rebuilt from it (core's `eventBody`):
 * that saves a third of the memory of a small event.
 */
export function encodeEvent({ event, acceptedAtMs, subscriptionIds }: StoredEvent): string {
  const head = [
    encodeKind(event).toString(36),
    Date.parse(event.createdAt).toString(36),
    acceptedAtMs.toString(36),
    subscriptionIds.join(','),
  ];
  return `${head.join(' ')}\n${event.dataJson}`;
}

export function decodeEvent(id: string, text: string): StoredEvent {
  const end = text.indexOf('\n');
  const [kind = '', created = '', accepted = '', subscriptions = ''] = text.slice(0, end).split(' ');
  const createdAt = new Date(Number.parseInt(created, 36)).toISOString();
  return {
    event: { id, ...decodeKind(Number.parseInt(kind, 36)), createdAt, dataJson: text.slice(end + 1) },
    acceptedAtMs: Number.parseInt(accepted, 36),
    subscriptionIds: subscriptions === '' ? [] : subscriptions.split(','),
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
