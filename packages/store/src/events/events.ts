/** Finds events and keeps them: each is stored once, until its last delivery can't be replayed any more. */
import {
  ENVIRONMENTS,
  type Event,
  type EventRef,
  type EventType,
  eventIdOf,
  eventRef,
  isJoint,
  jointRef,
  partitionOf,
  topicsOfEvent,
} from '@posthorn/core';
import { readNamed } from '../decode-named.ts';
import { readDue } from '../due.ts';
import { eventKey, fanningOutKey, partitionPrefix, topicKey } from '../keys.ts';
import { withCircuitBreaker } from '../redis/circuit-breaker.ts';
import { type EventRecord, runScript } from '../scripts.ts';
import { readPartitions, type Store } from '../store.ts';
import { decodeEvent, type StoredEvent } from './event-record.ts';

/**
 * The subscriptions, of all partitions, that an event matches now. Reads two sets per partition, whatever the number of
 * subscriptions.
 */
export async function findMatches(
  store: Store,
  event: Pick<Event, 'environment'> & { type: EventType },
): Promise<string[]> {
  const topics = topicsOfEvent(event);
  return await readPartitions(store, (prefix) =>
    withCircuitBreaker(store, prefix, () => store.redis.sunion(topics.map((topic) => topicKey(prefix, topic)))),
  );
}

/** Confirms that all deliveries of an event and their jobs are stored. */
export async function confirmFanOut(store: Store, event: EventRef): Promise<void> {
  await store.redis.zrem(fanningOutKey(prefixOfEvent(store, event)), event);
}

/**
 * Notes that a fan-out makes progress, so that it does not count as interrupted; changes nothing once it is confirmed.
 */
export async function renewFanOut(store: Store, event: EventRef, nowMs: number): Promise<void> {
  await store.redis.zadd(fanningOutKey(prefixOfEvent(store, event)), 'XX', nowMs, event);
}

/** A fan-out that has made no progress for this long was interrupted. */
const INTERRUPTED_AFTER_MS = 15_000;

/**
 * Claims a fan-out that was interrupted. Returns whether the caller is to finish it: of several processes one.
 */
export async function claimFanOut(store: Store, event: EventRef, nowMs: number): Promise<boolean> {
  const [beforeMs, afterMs] = [nowMs - INTERRUPTED_AFTER_MS, nowMs + INTERRUPTED_AFTER_MS];
  return await runScript(store, 'claimFanOut', prefixOfEvent(store, event), { event, beforeMs, afterMs, nowMs });
}

/**
 * Up to `limit` events of a partition whose fan-out was interrupted: it has made no progress for 15 s and was never
 * confirmed, because its process died, or Redis was away. Also those with a time that is as far ahead: the clock of
 * their process was wrong, and until that time nobody else would finish them. If it goes on, repeating it changes
 * nothing.
 */
export async function interruptedFanOuts(
  store: Store,
  partition: number,
  nowMs: number,
  limit: number,
): Promise<EventRef[]> {
  const key = fanningOutKey(partitionPrefix(store, partition));
  const [beforeMs, afterMs] = [nowMs - INTERRUPTED_AFTER_MS, nowMs + INTERRUPTED_AFTER_MS];
  const found = await readDue(store, key, ['-inf', beforeMs], [afterMs, '+inf'], limit);
  return found.slice(0, limit) as EventRef[];
}

/**
 * An event by its reference, or undefined if it does not exist or has expired. One that is known only by its id and
 * environment is found in its joint record too, which the result's reference then says.
 */
export async function loadEvent(store: Store, event: EventRef): Promise<StoredEvent | undefined> {
  const found = await loadExactly(store, event);
  if (found || isJoint(event)) return found;
  const environment = ENVIRONMENTS.find((each) => event === eventRef({ id: eventIdOf(event), environment: each }));
  const joint = environment && jointRef({ id: eventIdOf(event), environment });
  return joint && (await loadExactly(store, joint));
}

/** An event by the reference that it is stored under. Throws `UnreadableRecord`. */
export async function loadExactly(store: Store, event: EventRef): Promise<StoredEvent | undefined> {
  const key = eventKey(prefixOfEvent(store, event), event);
  const reading = isJoint(event) ? store.redis.hgetall(key) : store.redis.get(key);
  const stored = await readNamed<EventRecord | null>('event', event, reading);
  return stored === null ? undefined : decodeEvent(event, stored);
}

/**
 * As how many items parsing the data of an event counts in `visitInSlices`: 128 Ki characters are a slice of their own.
 */
export function parsingWeight({ event }: StoredEvent): number {
  return event.dataJson.length / 32;
}

/** Every stored event with this id: at most one in each environment. */
export async function findEvents(store: Store, eventId: string): Promise<StoredEvent[]> {
  const found = await Promise.all(refsOf(eventId).map((ref) => loadExactly(store, ref)));
  return found.filter((stored) => stored !== undefined);
}

/** The references that events with an id may be stored under. */
export function refsOf(eventId: string): EventRef[] {
  const refs = ENVIRONMENTS.flatMap((environment) => {
    const event = { id: eventId, environment };
    return [eventRef(event), jointRef(event)];
  });
  return refs.filter((ref) => ref !== undefined);
}

/** The key prefix of the partition in which an event is stored. */
export function prefixOfEvent(store: Store, event: EventRef): string {
  // Most installations have one, and unpacking an id takes a microsecond.
  if (store.partitions === 1) return partitionPrefix(store, 0);
  return partitionPrefix(store, partitionOf(eventIdOf(event), store.partitions));
}

/** Keeps an event at least until `untilMs`; never shortens its life. */
export async function keepEvent(store: Store, event: EventRef, untilMs: number): Promise<void> {
  if (isJoint(event)) await runScript(store, 'keepJoint', prefixOfEvent(store, event), { event, untilMs });
  else await store.redis.call('PEXPIREAT', eventKey(prefixOfEvent(store, event), event), untilMs, 'GT');
}

/** Keeps an event like `keepEvent`; throws `StorageUnavailable` soon if the master of a Cluster does not reply. */
export async function keepEventSoon(store: Store, event: EventRef, untilMs: number): Promise<void> {
  await withCircuitBreaker(store, prefixOfEvent(store, event), () => keepEvent(store, event, untilMs));
}

/** Keeps an event like `keepEventSoon`; returns whether it exists. */
export async function keepIfExists(store: Store, event: EventRef, untilMs: number): Promise<boolean> {
  await keepEventSoon(store, event, untilMs);
  return (await store.redis.exists(eventKey(prefixOfEvent(store, event), event))) === 1;
}
