/** Finds the events of an erasure, without an index; the steps by which erase-found-event.ts erases one. */
import {
  chunksOf,
  type Erasure,
  type EventRef,
  isFinished,
  type SearchTerm,
  sessionFacts,
  termsOf,
} from '@posthorn/core';
import { Cluster } from 'ioredis';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { deliveryIdsOf } from '../events/deliveries-of-event.ts';
import { encodeErased, type StoredEvent } from '../events/event-record.ts';
import { findEvents, keepEvent, loadExactly, parsingWeight, prefixOfEvent } from '../events/events.ts';
import { entriesToRemove, sessionWith } from '../events/search-index.ts';
import * as keys from '../keys.ts';
import { filterInSlices } from '../lists/in-slices.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { runScript } from '../scripts.ts';
import { allPartitions, type Store, sumPartitions } from '../store.ts';

/** Keys that Redis looks at in one step of a scan, those of other things included: about half a millisecond. */
const KEYS_AT_ONCE = 1_000;
/** Events loaded, or noted with their deliveries, at once: at most some MB. */
const EVENTS_AT_ONCE = 25;
/** Subscriptions of an event whose deliveries are loaded at once, and deliveries changed by one script: a few milliseconds of Redis. */
const DELIVERIES_AT_ONCE = 100;

/** What an erasure erases. */
export type Erased = Pick<Erasure, 'id' | 'field' | 'environment'> & { value: string };

/**
 * The partitions whose maintenance looks for events. A scan goes through all keys of one server: without Redis Cluster,
 * that of the first partition finds the events of all.
 */
function scanningPartitions(store: Store): number[] {
  return store.redis instanceof Cluster ? allPartitions(store) : [0];
}

/** How far an erasure has come in all partitions: passes over the events that all scans have done, and the events left to erase. */
export async function erasureProgress(store: Store, id: string): Promise<{ passes: number; left: number }> {
  const passes = await Promise.all(
    scanningPartitions(store).map((partition) =>
      store.redis.hget(keys.erasureProgressKey(keys.partitionPrefix(store, partition), id), 'passes'),
    ),
  );
  // After the passes: a pass that has ended adds no more events.
  const left = await sumPartitions(store, (prefix) => store.redis.zcard(keys.erasureEventsKey(prefix, id)));
  return { passes: Math.min(...passes.map(Number)), left };
}

/** Whether the maintenance of a partition has to look for events: fewer than `passesNeeded` passes are done. */
export async function hasPassToDo(store: Store, id: string, partition: number, passesNeeded: number): Promise<boolean> {
  if (!scanningPartitions(store).includes(partition)) return false;
  const key = keys.erasureProgressKey(keys.partitionPrefix(store, partition), id);
  return Number(await store.redis.hget(key, 'passes')) < passesNeeded;
}

/**
 * Does the next step of a pass over the events, from where the last one ended, up to `passesNeeded` passes; notes the
 * events that match. Returns how many these are, and whether there is more to do. May be repeated after a crash, and
 * done by several processes at once.
 */
export async function findNextEvents(
  store: Store,
  erased: Erased,
  partition: number,
  passesNeeded: number,
  nowMs: number,
): Promise<{ found: number; hasMore: boolean }> {
  const { id } = erased;
  const prefix = keys.partitionPrefix(store, partition);
  const key = keys.erasureProgressKey(prefix, id);
  const [passes, cursor, run] = await store.redis.hmget(key, 'passes', 'cursor', 'run');
  if (Number(passes) >= passesNeeded) return { found: 0, hasMore: false };
  const next = await readNext(store, erased, partition, cursor ?? undefined, run ?? undefined);
  const { lifeMs } = streamLimits(store, nowMs);
  const note = async (stored: StoredEvent) => {
    const counts = await countDeliveries(store, stored);
    // Due at once, also if the clock of ingest is ahead.
    const dueAtMs = Math.min(stored.acceptedAtMs, nowMs);
    const found = { id, event: stored.ref, dueAtMs, ...counts, lifeMs };
    await runScript(store, 'findEvent', prefixOfEvent(store, stored.ref), found);
  };
  // One by one, most of the time would pass between commands: other erasures wait for this step.
  for (const some of chunksOf(next.events, EVENTS_AT_ONCE)) await Promise.all(some.map(note));
  const place = { cursor: cursor ?? undefined, nextCursor: next.cursor, run: next.run };
  await runScript(store, 'moveScan', prefix, { id, passes: passes ?? '0', ...place, lifeMs });
  const hasMore = next.cursor !== undefined || Number(passes) + 1 < passesNeeded;
  return { found: next.events.length, hasMore };
}

/** A part of a pass: the events in it that match, and where the next part begins; undefined at the end. */
interface Part {
  events: StoredEvent[];
  cursor?: string;
  run?: string;
}

async function readNext(
  store: Store,
  erased: Erased,
  partition: number,
  cursor: string | undefined,
  run: string | undefined,
): Promise<Part> {
  if (erased.field === 'event_id') {
    const found = await findEvents(store, erased.value);
    return { events: found.filter((stored) => isWanted(stored, erased)) };
  }
  const place = store.redis instanceof Cluster ? partition : '*';
  const pattern = keys.eventKey(`${store.prefix}:{${place}}`, '*' as EventRef);
  const values = { cursor: cursor ?? '0', run, pattern, limit: KEYS_AT_ONCE };
  const found = await runScript(store, 'scanEvents', keys.partitionPrefix(store, partition), values);
  if (found.cursor === 'restart') return { events: [], cursor: '0', run: found.run };
  const events: StoredEvent[] = [];
  const isToErase = (stored: StoredEvent) => isWanted(stored, erased);
  for (const some of chunksOf(found.keys, EVENTS_AT_ONCE)) {
    const refs = some.flatMap((key) => refOf(store, key));
    const loaded = await Promise.all(refs.map((ref) => loadExactly(store, ref)));
    const existing = loaded.filter((stored) => stored !== undefined);
    events.push(...(await filterInSlices(existing, isToErase, parsingWeight)));
  }
  return found.cursor === '0' ? { events } : { events, cursor: found.cursor, run: found.run };
}

/** The reference in the key of an event. */
function refOf({ prefix }: Store, key: string): EventRef[] {
  const [, ref] = /^\{\d+\}:event:(.+)$/.exec(key.slice(prefix.length + 1)) ?? [];
  return ref === undefined ? [] : [ref as EventRef];
}

/** Whether an erasure has to erase an event. */
function isWanted(stored: StoredEvent, { field, value, environment }: Erased): boolean {
  const { event, erasedAtMs } = stored;
  if (erasedAtMs !== undefined || (environment !== undefined && event.environment !== environment)) return false;
  if (field === 'event_id') return event.id === value;
  // Most events end here. The text is that of JSON.stringify, so the value stands in it like this; except that a U+FFFD
  // may stand for half a character (core's search-terms.ts).
  if (!value.includes('\ufffd') && !event.dataJson.includes(JSON.stringify(value))) return false;
  return sessionWith(stored, [{ field, value } satisfies SearchTerm]) !== undefined;
}

/** All deliveries of an event, replays included, in parts of some hundred. Their ids follow from the event and its subscriptions. */
export async function* deliveriesToErase(
  store: Store,
  { ref, subscriptionIds }: StoredEvent,
): AsyncGenerator<StoredDelivery[]> {
  for (const part of chunksOf(subscriptionIds, DELIVERIES_AT_ONCE)) {
    yield await loadExisting(store, await deliveryIdsOf(store, ref, part));
  }
}

async function countDeliveries(store: Store, stored: StoredEvent): Promise<{ deliveries: number; unsent: number }> {
  const counts = { deliveries: 0, unsent: 0 };
  for await (const part of deliveriesToErase(store, stored)) {
    counts.deliveries += part.length;
    counts.unsent += part.filter(({ status }) => !isFinished(status)).length;
  }
  return counts;
}

/** The events of a partition that an erasure has found, has not erased, and is to look at by now. At most `limit`. */
export async function eventsToErase(
  store: Store,
  partition: number,
  id: string,
  nowMs: number,
  limit: number,
): Promise<EventRef[]> {
  const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), id);
  return (await store.redis.zrangebyscore(key, '-inf', nowMs, 'LIMIT', 0, limit)) as EventRef[];
}

/** Leaves an event of an erasure until `atMs`. */
export async function lookLater(store: Store, id: string, event: EventRef, atMs: number): Promise<void> {
  await store.redis.zadd(keys.erasureEventsKey(prefixOfEvent(store, event), id), 'XX', atMs, event);
}

/** Forgets an event of an erasure that has nothing to erase any more. */
export async function forgetEvent(store: Store, id: string, event: EventRef): Promise<void> {
  await store.redis.zrem(keys.erasureEventsKey(prefixOfEvent(store, event), id), event);
}

/** Whether deliveries of an event may still be made: its fan-out is not confirmed. */
export async function isFanningOut(store: Store, event: EventRef): Promise<boolean> {
  return (await store.redis.zscore(keys.fanningOutKey(prefixOfEvent(store, event)), event)) !== null;
}

/**
 * Marks deliveries of one event and one partition as erased; with `endsUnsent`, ends those that are unfinished first,
 * unless a worker has their job: its outcome is recorded first. Returns how many are unfinished. May be repeated.
 */
export async function eraseDeliveries(
  store: Store,
  partition: number,
  deliveries: readonly StoredDelivery[],
  endsUnsent: boolean,
  nowMs: number,
): Promise<number> {
  const expiresAtMs = nowMs + keptWhileUnfinishedMs(store);
  const unsent = endsUnsent ? deliveries.find(({ status }) => !isFinished(status)) : undefined;
  // Its id stays known for longer than the delivery: a new event with the same id would find the delivery in its place.
  if (unsent) await keepEvent(store, unsent.event, expiresAtMs);
  let left = 0;
  for (const part of chunksOf(deliveries, DELIVERIES_AT_ONCE)) {
    left += await runScript(store, 'eraseDeliveries', keys.partitionPrefix(store, partition), {
      endsUnsent,
      nowMs,
      expiresAtMs,
      retentionMs: store.retentionMs,
      deliveries: part.map(({ id }) => ({ id })),
    });
  }
  return left;
}

/** Erases the payload of an event all of whose deliveries are marked, and counts them. Counts once if it is repeated. */
export async function eraseEvent(
  store: Store,
  id: string,
  stored: StoredEvent,
  counts: { deliveries: number; ended: number; responses: number },
  nowMs: number,
): Promise<void> {
  const { ref, event } = stored;
  const terms = termsOf(sessionFacts(event));
  await runScript(store, 'eraseEvent', prefixOfEvent(store, ref), {
    id,
    event: ref,
    text: encodeErased(stored, nowMs),
    ...entriesToRemove(store, stored, terms),
    ...counts,
  });
}
