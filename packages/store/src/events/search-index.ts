/**
 * The search index: finds events by the terms of core's search-terms.ts.
 *
 * A term is hashed: the first byte of the hash chooses a list, the next three mark the entry in it. A list holds the
 * entries of many terms, for one day (or hour) of acceptance. So an entry takes about 30 bytes and no key of its own,
 * and whole lists expire. A search reads the lists of the term, newest first, and then the events themselves. Their
 * terms decide: two terms with the same mark cost a look, and are told apart.
 */
import { hash } from 'node:crypto';
import {
  chunksOf,
  DAY_MS,
  type Environment,
  type Event,
  type EventRef,
  eventIdOf,
  eventRef,
  HOUR_MS,
  hasTerm,
  knownOrNew,
  type SearchTerm,
  type SessionFacts,
  sessionFacts,
} from '@posthorn/core';
import { GRACE_MS } from '../constants.ts';
import { decodeNamed, loadReadable, separate, UnreadableRecord } from '../decode-named.ts';
import { allPrefixes, installationKey, searchKey } from '../keys.ts';
import { filterInSlices, visitInSlices } from '../lists/in-slices.ts';
import type { Store } from '../store.ts';
import type { StoredEvent } from './event-record.ts';
import { loadEvent, parsingWeight } from './events.ts';
import { packUuid, unpackUuid } from './pack-data.ts';

/** From this retention on, a slice is a day: there are then 8 to some hundred of them. */
const DAILY_FROM_MS = 7 * DAY_MS;
/** Entries read by one command: 60 kB, less than a millisecond of Redis. */
const CHUNK = 2_000;
/**
 * Lists read at once. In few, those of the newest days are read to the end before older ones use up what may be looked
 * at.
 */
const LISTS_AT_ONCE = 32;
/** Entries that one search looks at, those of other terms included: some tens of milliseconds. */
const MAX_LOOKED_AT = 200_000;
/** Loading an event costs as much as looking at this many entries. */
const LOOKS_FOR_AN_EVENT = 20;
/** Events loaded at once, of each list. */
const EVENTS_AT_ONCE = 20;

const SLICE_UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
] as const;

type Slices = ReturnType<typeof slicesFor>;
const slicesOf = new WeakMap<Store, Slices>();

/**
 * The part of the index that a moment belongs to. The unit is part of the name, so that a change of `RETENTION` mixes
 * no slices.
 */
const slices = (store: Store): Slices => knownOrNew(slicesOf, store, slicesFor);

function slicesFor({ retentionMs }: Store) {
  const [unit, sliceMs] = SLICE_UNITS[retentionMs >= DAILY_FROM_MS ? 0 : 1];
  // As long as an event that fails after its last retry, or that is held, is kept. One that is replayed later outlives
  // its entries.
  const lifeMs = retentionMs + 2 * Math.min(retentionMs, GRACE_MS);
  return {
    nameOf: (number: number) => `${unit}${number}`,
    numberAt: (ms: number) => Math.floor(ms / sliceMs),
    untilMs: (number: number) => (number + 1) * sliceMs + lifeMs,
    oldestAt: (nowMs: number) => Math.floor((nowMs - lifeMs) / sliceMs),
  };
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** 12 bits as two characters. */
const base64Url = (bits: number) => BASE64URL.charAt(bits >> 6) + BASE64URL.charAt(bits & 0x3f);

function hashOf({ field, value }: SearchTerm): { bucket: string; mark: string } {
  // As text, which Node hands over faster than bytes.
  const digest = hash('sha256', `${field}\n${value}`, 'hex');
  const bits = Number.parseInt(digest.slice(2, 8), 16);
  return { bucket: digest.slice(0, 2), mark: base64Url(bits >> 12) + base64Url(bits & 0xfff) };
}

/**
 * What the script `storeEvents` needs to index an event: how the names of its lists begin, when a new list expires, and
 * six characters for each term. Two are the end of its list's name, four come before the entry.
 */
export function searchEntries(store: Store, { event, acceptedAtMs }: StoredEvent, terms: readonly SearchTerm[]) {
  const { nameOf, numberAt, untilMs } = slices(store);
  const number = numberAt(acceptedAtMs);
  let marks = '';
  for (const term of terms) {
    const { bucket, mark } = hashOf(term);
    marks += bucket + mark;
  }
  return { slice: `${nameOf(number)}:`, searchUntilMs: untilMs(number), terms: marks, entry: encodeEntry(event) };
}

/**
 * What the script `eraseEvent` needs to remove an event from the index: pairs of a list and an entry, as `storeEvents`
 * adds them. A change of `RETENTION` since then may have changed the unit of the slices, so there is a list of each.
 * A list has one copy of an entry, unless events expire, and their ids are taken again, within its time. Redis stops at
 * it: an erasure goes from the oldest event to the newest, so it finds those of one user, of whom one list may have
 * hundreds of thousands, at the beginning; reading to the end takes 4 ms for each 100,000 entries.
 */
export function entriesToRemove(
  { retentionMs }: Store,
  { event, acceptedAtMs }: StoredEvent,
  terms: readonly SearchTerm[],
): { search: string; copies: number } {
  const lists = SLICE_UNITS.map(([unit, sliceMs]) => `${unit}${Math.floor(acceptedAtMs / sliceMs)}`);
  const pairs = terms.flatMap((term) => {
    const { bucket, mark } = hashOf(term);
    return lists.map((list) => `${list}:${bucket} ${mark}${encodeEntry(event)}`);
  });
  return { search: pairs.join(' '), copies: retentionMs < HOUR_MS ? 0 : 1 };
}

/** The ids that Posthorn makes, which are most: their UUID is packed. */
const OWN_ID = /^evt_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** The first letter of the environment, in capitals before a packed id, and the id. */
function encodeEntry({ id, environment }: Pick<Event, 'id' | 'environment'>): string {
  const letter = environment === 'sandbox' ? 's' : 'p';
  const uuid = OWN_ID.exec(id)?.[1];
  return uuid === undefined ? letter + id : letter.toUpperCase() + packUuid(uuid);
}

function decodeEntry(text: string): { id: string; environment: Environment } {
  const letter = text.slice(0, 1);
  const environment = letter.toLowerCase() === 's' ? 'sandbox' : 'production';
  if (letter === letter.toLowerCase()) return { id: text.slice(1), environment };
  return { id: `evt_${unpackUuid(text.slice(1))}`, environment };
}

/**
 * The newest `limit` events, newest first, that have one of the terms. `hasMore`: there are more, or there may be,
 * since the search ended after `MAX_LOOKED_AT` entries. `unreadable`: those that can't be read may have one of them; by
 * event id.
 */
export async function searchEvents(
  store: Store,
  terms: readonly SearchTerm[],
  environment: Environment | undefined,
  limit: number,
  nowMs: number,
): Promise<{ events: FoundEvent[]; hasMore: boolean; unreadable: UnreadableRecord[] }> {
  const { nameOf, numberAt, oldestAt } = slices(store);
  const hashes = terms.map(hashOf);
  const prefixes = allPrefixes(store);
  const slicesAtOnce = Math.max(1, Math.floor(LISTS_AT_ONCE / (prefixes.length * terms.length)));
  const found = new Map<EventRef, Found>();
  const unreadable = new Map<string, UnreadableRecord>();
  const leaveOut = ({ id: ref, reason }: UnreadableRecord) => {
    unreadable.set(ref, new UnreadableRecord('event', eventIdOf(ref as EventRef), reason));
  };
  const load = async (refs: EventRef[]): Promise<StoredEvent[]> => {
    const loadAll = (some: EventRef[]) => Promise.all(some.map((ref) => loadEvent(store, ref)));
    const { items, unreadable: errors } = separate(await loadReadable(loadAll, refs));
    errors.forEach(leaveOut);
    return items;
  };
  const sessionOf = (stored: StoredEvent): SessionFacts | undefined => {
    try {
      return sessionWith(stored, terms);
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      leaveOut(error);
      return undefined;
    }
  };
  const budget = { left: MAX_LOOKED_AT };
  const isWanted = {
    ref: (event: Pick<Event, 'environment'>) => environment === undefined || event.environment === environment,
    event: (stored: StoredEvent) => sessionOf(stored) !== undefined,
  };
  // One slice more: the clock of another process may be ahead.
  let newest = numberAt(nowMs) + 1;
  for (; newest >= oldestAt(nowMs) && found.size <= limit && budget.left > 0; newest -= slicesAtOnce) {
    const numbers = Array.from({ length: slicesAtOnce }, (_, i) => newest - i);
    const lists = numbers.flatMap((number) =>
      prefixes.flatMap((prefix) =>
        hashes.map(({ bucket, mark }) => ({ key: searchKey(prefix, `${nameOf(number)}:${bucket}`), mark })),
      ),
    );
    await Promise.all(
      lists.map(async (list) => {
        for (const one of await newestOfList(store, list, load, isWanted, limit, budget)) found.set(one.ref, one);
      }),
    );
  }
  // What a batch has brought was accepted in the same millisecond. Where its events were created then too, they stay as
  // a list has them.
  const newestFirst = [...found.values()].sort(
    (a, b) => b.acceptedAtMs - a.acceptedAtMs || b.createdAtMs - a.createdAtMs,
  );
  const events: FoundEvent[] = [];
  const addIfWanted = (stored: StoredEvent) => {
    const session = sessionOf(stored);
    const { dataJson: _, ...event } = stored.event;
    if (session) events.push({ ...stored, event, session });
  };
  for (const some of chunksOf(newestFirst.slice(0, limit), EVENTS_AT_ONCE)) {
    // One may have expired meanwhile, or have been erased.
    await visitInSlices(await load(some.map(({ ref }) => ref)), addIfWanted, parsingWeight);
  }
  return { events, hasMore: found.size > limit || budget.left <= 0, unreadable: [...unreadable.values()] };
}

/** An event that a search has found, without its data, which may be large. */
export interface FoundEvent extends Omit<StoredEvent, 'event'> {
  event: Omit<Event, 'dataJson'>;
  session: SessionFacts;
}

/** What a search keeps of an event that it has found. Many lists have `limit` of them, and an event may be large. */
interface Found {
  ref: EventRef;
  acceptedAtMs: number;
  createdAtMs: number;
}

/**
 * The newest wanted events of a list with a mark, more than `limit` if there are, newest first. Entries of events that
 * are gone or not wanted do not count: a wanted one may be behind any number of them.
 */
async function newestOfList(
  store: Store,
  { key, mark }: { key: string; mark: string },
  load: (refs: EventRef[]) => Promise<StoredEvent[]>,
  isWanted: { ref: (event: Pick<Event, 'environment'>) => boolean; event: (stored: StoredEvent) => boolean },
  limit: number,
  budget: { left: number },
): Promise<Iterable<Found>> {
  const found = new Map<EventRef, Found>();
  const mayGoOn = () => found.size <= limit && budget.left > 0;
  // From the end: entries that are added meanwhile move others into the next chunk, where they are found again, never
  // out of it.
  for (let end = -1; mayGoOn(); end -= CHUNK) {
    const entries = await store.redis.lrange(key, end - CHUNK + 1, end);
    budget.left -= entries.length;
    const marked = entries.reverse().filter((entry) => entry.startsWith(mark));
    const refs = marked.map((entry) => decodeEntry(entry.slice(mark.length))).filter(isWanted.ref);
    for (const some of chunksOf([...new Set(refs.map(eventRef))], EVENTS_AT_ONCE)) {
      if (!mayGoOn()) break;
      budget.left -= some.length * LOOKS_FOR_AN_EVENT;
      const wanted = await filterInSlices(await load(some), isWanted.event, parsingWeight);
      for (const { ref, acceptedAtMs, event } of wanted)
        found.set(ref, { ref, acceptedAtMs, createdAtMs: Date.parse(event.createdAt) });
    }
    if (entries.length < CHUNK) break;
  }
  return found.values();
}

/**
 * The session of an event that has one of the terms; undefined if it has none, or has been erased. Throws
 * `UnreadableRecord`, with the reference as its id, if its data are no JSON.
 */
export function sessionWith(
  { ref, event, erasedAtMs }: StoredEvent,
  terms: readonly SearchTerm[],
): SessionFacts | undefined {
  if (erasedAtMs !== undefined) return undefined;
  const session = decodeNamed('event', ref, () => sessionFacts(event));
  return hasTerm(session, terms) ? session : undefined;
}

/** Says to the console whether ingest indexes events (`EVENT_SEARCH`). */
export async function announceSearch(store: Store, isOn: boolean): Promise<void> {
  await store.redis.hset(installationKey(store.prefix), 'indexes_events', isOn ? 'on' : 'off');
}

/** Whether new events are indexed, as far as ingest has said. */
export async function isSearchOn(store: Store): Promise<boolean> {
  const key = installationKey(store.prefix);
  // Release 0.1.0 writes `event_search`.
  const [said, saidBefore] = await store.redis.hmget(key, 'indexes_events', 'event_search');
  return (said ?? saidBefore) === 'on';
}
