/** Finds the events of an erasure, without an index, and keeps a list of those to erase. */
import {
  chunksOf,
  ENVIRONMENTS,
  type Environment,
  type Erasure,
  type EventRef,
  eachInTurn,
  eventIdOf,
  eventRef,
  isFinished,
  jointRef,
  type SearchTerm,
} from '@posthorn/core';
import { Cluster } from 'ioredis';
import { decodeNamed, loadReadable, separate, UnreadableRecord } from '../decode-named.ts';
import { loadDeliveries } from '../deliveries/delivery-record.ts';
import { readDue } from '../due.ts';
import { deliveryIdsOf } from '../events/deliveries-of-event.ts';
import type { StoredEvent } from '../events/event-record.ts';
import { loadExactly, parsingWeight, prefixOfEvent, refsOf } from '../events/events.ts';
import { sessionWith } from '../events/search-index.ts';
import * as keys from '../keys.ts';
import { visitInSlices } from '../lists/in-slices.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { runScript } from '../scripts.ts';
import { allPartitions, type Store, sumPartitions } from '../store.ts';

/** Keys that Redis looks at in one step of a scan, those of other things included: about half a millisecond. */
const KEYS_AT_ONCE = 1_000;
/** Events loaded, or noted with their deliveries, at once: at most some MB. */
const EVENTS_AT_ONCE = 25;
/**
 * Subscriptions of an event whose deliveries are loaded at once, and deliveries changed by one script: a few
 * milliseconds of Redis.
 */
export const DELIVERIES_AT_ONCE = 100;
/**
 * Events that can't be read are beside those to erase, in the partition that looks for them: `UNREADABLE_MARK` and the
 * reference, with the time of the next try after `UNREADABLE_FROM_MS`. No event to erase is due so late, so none of
 * them is taken for one, also not by a release that does not know them; and each keeps its erasure from its end.
 */
const UNREADABLE_MARK = '!';
const UNREADABLE_FROM_MS = 1e15;
/** An event that can't be read is tried again after this. */
const RETRY_UNREADABLE_MS = 60_000;
/** The longest time for which an event of an erasure is left before it is looked at again. */
export const LONGEST_WAIT_MS = 60_000;
/** Of the events that can't be read, an erasure names this many. */
const MAX_UNREADABLE_NAMED = 20;

/** What an erasure erases. */
type Erased = Pick<Erasure, 'id' | 'field' | 'environment'> & { value: string };

/**
 * The partitions whose maintenance looks for events. A scan goes through all keys of one server: without Redis Cluster,
 * that of the first partition finds the events of all.
 */
function scanningPartitions(store: Store): number[] {
  return store.redis instanceof Cluster ? allPartitions(store) : [0];
}

/**
 * How far an erasure has come in all partitions: passes over the events that all scans have done, and the events left
 * to erase.
 */
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

/** How many events an erasure can't read, and the ids of some. */
export async function readUnreadable(store: Store, id: string): Promise<Erasure['unreadable']> {
  const parts = await Promise.all(
    scanningPartitions(store).map(async (partition) => {
      const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), id);
      const [events, first] = await Promise.all([
        store.redis.zcount(key, UNREADABLE_FROM_MS, '+inf'),
        store.redis.zrangebyscore(key, UNREADABLE_FROM_MS, '+inf', 'LIMIT', 0, MAX_UNREADABLE_NAMED),
      ]);
      return { events, ids: first.map((member) => eventIdOf(refOfMember(member))) };
    }),
  );
  const ids = parts.flatMap((part) => part.ids);
  return { events: parts.reduce((sum, part) => sum + part.events, 0), ids: ids.slice(0, MAX_UNREADABLE_NAMED) };
}

const refOfMember = (member: string) => member.slice(UNREADABLE_MARK.length) as EventRef;

/**
 * How many passes over the events an erasure has done, and where it is in the present one: no cursor before its first
 * step.
 */
export interface Place extends Cursor {
  passes: string;
}

interface Cursor {
  cursor?: string | undefined;
  /** The run of the server that gave the cursor. */
  run?: string | undefined;
}

/** An erasure that looks for events, from a place on. */
export type Finder = Erased & { place: Place };

/** Where an erasure is in a partition; undefined if the maintenance of that partition does not look for events. */
export async function readPlace(store: Store, id: string, partition: number): Promise<Place | undefined> {
  if (!scanningPartitions(store).includes(partition)) return undefined;
  const key = keys.erasureProgressKey(keys.partitionPrefix(store, partition), id);
  const [passes, cursor, run] = await store.redis.hmget(key, 'passes', 'cursor', 'run');
  return { passes: passes ?? '0', cursor: cursor ?? undefined, run: run ?? undefined };
}

/**
 * Finds and notes the events of an erasure by event id, without a pass. Returns those that have been erased already.
 * May be repeated, like `findNextEvents`.
 */
export async function findByEventId(
  store: Store,
  partition: number,
  finder: Finder,
  nowMs: number,
): Promise<StoredEvent[]> {
  // All of them are in one partition. In a Cluster each partition looks for its own.
  const own = keys.partitionPrefix(store, partition);
  const isOwn = (ref: EventRef) => !(store.redis instanceof Cluster) || prefixOfEvent(store, ref) === own;
  const { items, unreadable } = await loadEvents(store, refsOf(finder.value).filter(isOwn));
  await noteUnreadable(store, partition, finder, unreadable, nowMs);
  await noteFound(store, finder, items.filter(matcherOf(finder)), nowMs);
  await moveOn(store, partition, [finder], {}, nowMs);
  return items.filter(isErased);
}

const isErased = ({ erasedAtMs }: StoredEvent) => erasedAtMs !== undefined;

/**
 * Does the next step of a pass that erasures at the same cursor share; notes the events that match. Returns where they
 * are then, undefined at the end of the pass, and how many events each has found. One for which that fails stays where
 * it is: `found` is undefined, and `noted` has the error. `erased`: events in this part that have been erased already.
 * May be repeated after a crash, and done by several processes at once.
 */
export async function findNextEvents(
  store: Store,
  partition: number,
  finders: readonly Finder[],
  nowMs: number,
): Promise<{
  next: Cursor | undefined;
  found: (number | undefined)[];
  noted: PromiseSettledResult<void>;
  erased: StoredEvent[];
}> {
  const { events, erased, unreadable, ...next } = await readNext(store, partition, finders);
  const found: (number | undefined)[] = finders.map(() => undefined);
  const note = async ([i, finder]: [number, Finder]) => {
    const own = events[i] ?? [];
    await noteUnreadable(store, partition, finder, unreadable, nowMs);
    await noteFound(store, finder, own, nowMs);
    found[i] = own.length;
  };
  // One after the other: each loads the deliveries of many events.
  const [noted] = await Promise.allSettled([eachInTurn(finders.entries(), note)]);
  const moved = finders.filter((_, i) => found[i] !== undefined);
  if (moved.length > 0) await moveOn(store, partition, moved, next, nowMs);
  return { next: next.cursor === undefined ? undefined : next, found, noted, erased };
}

/** Notes events that an erasure has found. The deliveries of one that is noted already are not read again. */
async function noteFound(store: Store, { id }: Erased, found: readonly StoredEvent[], nowMs: number): Promise<void> {
  const { lifeMs } = streamLimits(store, nowMs);
  const note = async (stored: StoredEvent) => {
    const prefix = prefixOfEvent(store, stored.ref);
    const isNoted = (await store.redis.zscore(keys.erasureEventsKey(prefix, id), stored.ref)) !== null;
    // The script counts an event only once.
    const counts = isNoted ? { deliveries: 0, unsent: 0 } : await countDeliveries(store, stored);
    // Due at once, also if the clock of ingest is ahead.
    const dueAtMs = Math.min(stored.acceptedAtMs, nowMs);
    await runScript(store, 'findEvent', prefix, { id, event: stored.ref, dueAtMs, ...counts, lifeMs });
  };
  // One by one, most of the time would pass between commands: other erasures wait for this step.
  for (const some of chunksOf(found, EVENTS_AT_ONCE)) await Promise.all(some.map(note));
}

/** Notes events that may be some of an erasure, but can't be read. */
async function noteUnreadable(
  store: Store,
  partition: number,
  { id, environment }: Erased,
  refs: readonly EventRef[],
  nowMs: number,
): Promise<void> {
  const own = refs.filter((ref) => environment === undefined || mayBeOf(ref, environment));
  if (own.length === 0) return;
  const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), id);
  const entries = own.flatMap((ref) => [UNREADABLE_FROM_MS + nowMs, UNREADABLE_MARK + ref]);
  await store.redis.zadd(key, 'NX', ...entries);
  await store.redis.pexpire(key, streamLimits(store, nowMs).lifeMs);
}

/** Whether an event may be of an environment, from its reference alone. */
function mayBeOf(ref: EventRef, environment: Environment): boolean {
  const others = ENVIRONMENTS.filter((each) => each !== environment).map((each) => ({
    id: eventIdOf(ref),
    environment: each,
  }));
  return !others.some((other) => ref === eventRef(other) || ref === jointRef(other));
}

/** The events that an erasure could not read, and is to try again by now: some of them. */
export async function unreadableToRetry(
  store: Store,
  partition: number,
  id: string,
  nowMs: number,
): Promise<EventRef[]> {
  if (!scanningPartitions(store).includes(partition)) return [];
  const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), id);
  const dueMs = UNREADABLE_FROM_MS + nowMs;
  const ahead = [`(${dueMs + RETRY_UNREADABLE_MS}`, '+inf'] as const;
  return (await readDue(store, key, [UNREADABLE_FROM_MS, dueMs], ahead, EVENTS_AT_ONCE)).map(refOfMember);
}

/**
 * Tries events again that an erasure could not read: notes those that match, and forgets what it knows by now. Throws
 * if one still can't be read; that is tried again later. May be repeated, and done by several processes at once.
 */
export async function retryUnreadable(
  store: Store,
  partition: number,
  erased: Erased,
  refs: readonly EventRef[],
  nowMs: number,
): Promise<void> {
  const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), erased.id);
  const isWanted = matcherOf(erased);
  await eachInTurn(refs, async (ref) => {
    const member = UNREADABLE_MARK + ref;
    // First, so that one that fails in another way does not keep the others from their turn.
    await store.redis.zadd(key, 'XX', UNREADABLE_FROM_MS + nowMs + RETRY_UNREADABLE_MS, member);
    const stored = await readEvent(store, ref);
    if (stored && isWanted(stored)) await noteFound(store, erased, [stored], nowMs);
    await store.redis.zrem(key, member);
  });
}

/** Moves erasures on from the cursor that they share, or ends their pass if there is no next one. */
async function moveOn(
  store: Store,
  partition: number,
  finders: readonly Finder[],
  next: Cursor,
  nowMs: number,
): Promise<void> {
  await runScript(store, 'moveScan', keys.partitionPrefix(store, partition), {
    cursor: finders[0]?.place.cursor,
    nextCursor: next.cursor,
    run: next.run,
    lifeMs: streamLimits(store, nowMs).lifeMs,
    erasures: finders.map(({ id, place: { passes } }) => ({ id, passes })),
  });
}

/**
 * A part of a pass: the events in it that match each of the finders, those that have been erased already, those that
 * can't be read, and where the next part begins; no cursor at the end.
 */
interface Part extends Cursor {
  events: StoredEvent[][];
  erased: StoredEvent[];
  unreadable: EventRef[];
}

async function readNext(store: Store, partition: number, finders: readonly Finder[]): Promise<Part> {
  const { cursor = '0', run } = finders[0]?.place ?? {};
  const server = store.redis instanceof Cluster ? partition : '*';
  const pattern = keys.eventKey(`${store.prefix}:{${server}}`, '*' as EventRef);
  const values = { cursor, run, pattern, limit: KEYS_AT_ONCE };
  const found = await runScript(store, 'scanEvents', keys.partitionPrefix(store, partition), values);
  const wanted = finders.map((finder) => ({ isWanted: matcherOf(finder), events: [] as StoredEvent[] }));
  const part: Part = { events: wanted.map((each) => each.events), erased: [], unreadable: [] };
  if (found.cursor === 'restart') return { ...part, cursor: '0', run: found.run };
  const compare = (stored: StoredEvent) => {
    try {
      for (const each of wanted) if (each.isWanted(stored)) each.events.push(stored);
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      part.unreadable.push(stored.ref);
    }
  };
  for (const some of chunksOf(found.keys, EVENTS_AT_ONCE)) {
    const refs = some.flatMap((key) => refOf(store, key));
    const { items, unreadable } = await loadEvents(store, refs);
    part.unreadable.push(...unreadable);
    part.erased.push(...items.filter(isErased));
    await visitInSlices(items, compare, (stored) => finders.length * parsingWeight(stored));
  }
  return found.cursor === '0' ? part : { ...part, cursor: found.cursor, run: found.run };
}

/** The events with these references that exist, and the references of those that can't be read. */
async function loadEvents(
  store: Store,
  refs: readonly EventRef[],
): Promise<{ items: StoredEvent[]; unreadable: EventRef[] }> {
  const load = (some: EventRef[]) => Promise.all(some.map((ref) => readEvent(store, ref)));
  const { items, unreadable } = separate(await loadReadable(load, [...refs]));
  return { items, unreadable: unreadable.map(({ id }) => id as EventRef) };
}

/** The event under a reference. Throws `UnreadableRecord`, with the reference as its id. */
async function readEvent(store: Store, ref: EventRef): Promise<StoredEvent | undefined> {
  const stored = await loadExactly(store, ref);
  return decodeNamed('event', ref, () => stored);
}

/** The reference in the key of an event. */
function refOf({ prefix }: Store, key: string): EventRef[] {
  const [, ref] = /^\{\d+\}:event:(.+)$/.exec(key.slice(prefix.length + 1)) ?? [];
  return ref === undefined ? [] : [ref as EventRef];
}

/** Returns a function that says whether an erasure has to erase an event. It throws `UnreadableRecord`. */
function matcherOf({ field, value, environment }: Erased): (stored: StoredEvent) => boolean {
  // Most events end here. The text is that of JSON.stringify, so the value stands in it like this; except that a U+FFFD
  // may stand for half a character (core's search-terms.ts).
  const text = value.includes('\ufffd') ? '' : JSON.stringify(value);
  return (stored) => {
    const { event, erasedAtMs } = stored;
    if (erasedAtMs !== undefined || (environment !== undefined && event.environment !== environment)) return false;
    if (field === 'event_id') return event.id === value;
    if (!event.dataJson.includes(text)) return false;
    return sessionWith(stored, [{ field, value } satisfies SearchTerm]) !== undefined;
  };
}

async function countDeliveries(store: Store, stored: StoredEvent): Promise<{ deliveries: number; unsent: number }> {
  const counts = { deliveries: 0, unsent: 0 };
  const load = (ids: string[]) => loadDeliveries(store, ids);
  for (const part of chunksOf(stored.subscriptionIds, DELIVERIES_AT_ONCE)) {
    const loaded = await loadReadable(load, await deliveryIdsOf(store, stored.ref, part));
    const existing = loaded.filter((delivery) => delivery !== undefined);
    // One that can't be read must not hold up the pass. It counts as unsent; erasing its event fails until it can.
    const isUnsent = (one: (typeof existing)[number]) => one instanceof UnreadableRecord || !isFinished(one.status);
    counts.deliveries += existing.length;
    counts.unsent += existing.filter(isUnsent).length;
  }
  return counts;
}

/**
 * The events of a partition that an erasure has found, has not erased, and is to look at by now. At most `limit`. Also
 * those that are to wait for longer than any does: the clock of the worker that left them was ahead.
 */
export async function eventsToErase(
  store: Store,
  partition: number,
  id: string,
  nowMs: number,
  limit: number,
): Promise<EventRef[]> {
  const key = keys.erasureEventsKey(keys.partitionPrefix(store, partition), id);
  const ahead = [`(${nowMs + LONGEST_WAIT_MS}`, `(${UNREADABLE_FROM_MS}`] as const;
  return (await readDue(store, key, ['-inf', nowMs], ahead, limit)).slice(0, limit) as EventRef[];
}
