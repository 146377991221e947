/** The indexes that lists of deliveries and others are read from, each as a source of candidates, newest first. */
import { DELIVERY_ID, DELIVERY_ID_START, type DeliveryStatus, deliveryIdPrefix } from '@posthorn/core';
import { MAX_LAG_MS } from '../constants.ts';
import { byStatusKey, bySubscriptionKey, failedKey, laneKey, prefixOfSubscription, succeededKey } from '../keys.ts';
import type { Store } from '../store.ts';
import { type Candidate, newestAfter, newestFirst, type Position, type Source, type TimeRange } from './page.ts';
import { scanSortedSet } from './sorted-set.ts';
import { readStreamBack } from './stream.ts';
import { streamLimits } from './stream-limits.ts';

/** Newest first by (time, id) over several sorted sets at once; only ids that begin with `idPrefix`. */
export function sortedSetSource(
  store: Store,
  idForm: RegExp,
  keys: string[],
  { fromMs, toMs }: TimeRange = {},
  idPrefix?: string,
): Source {
  const read: Source['read'] = async (after, count) => {
    const scan = { order: 'newest_first', after, count, fromMs, toMs, idPrefix } as const;
    const parts = await Promise.all(keys.map((key) => scanSortedSet(store, key, scan)));
    const candidates = parts.flat().map((entry) => ({ ...entry, item: entry.id }));
    return newestAfter(candidates, after, count);
  };
  return { idForm, read };
}

/**
 * The second half of a stream entry's id. Redis allows up to 2^64; no millisecond has nearly as many entries as this
 * allows.
 */
const STREAM_SEQUENCE = /^\d{1,16}$/;

/** How far the ids of a stream may run ahead of creation times: the clocks of processes differ. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** Entries of the stream of the succeeded that one command reads: at first, and at most. */
const [MIN_READ, MAX_READ] = [100, 2_000];

/**
 * Deliveries by status, newest first by (time, id), over several partitions and statuses at once; only ids that begin
 * with `idPrefix`.
 */
export function statusSource(
  store: Store,
  prefixes: readonly string[],
  statuses: readonly DeliveryStatus[],
  range: TimeRange,
  idPrefix?: string,
): Source {
  const keys = prefixes.flatMap((prefix) => statuses.map((status) => byStatusKey(prefix, status)));
  const readers = (statuses.includes('succeeded') ? prefixes : []).map((prefix) =>
    succeededReader(store, prefix, { ...range, idPrefix }),
  );
  const read: Source['read'] = async (after, count) => {
    const parts = await Promise.all([
      sortedSetSource(store, DELIVERY_ID, keys, range, idPrefix).read(after, count),
      ...readers.map((next) => next(after, count)),
    ]);
    return newestAfter(parts.flat(), after, count);
  };
  return { idForm: DELIVERY_ID, read };
}

/**
 * Reads the deliveries in the stream of the succeeded. The time of an entry is at most `MAX_LAG_MS` after that of its
 * delivery. So reading begins that much later than the newest delivery that is wanted. And no entry that was not read
 * yet is of a delivery made after the time of the last one read. Each entry is read once, however many calls the list
 * takes: a fan-out makes many at the same time.
 */
function succeededReader(
  store: Store,
  prefix: string,
  { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, idPrefix = '' }: TimeRange & { idPrefix?: string | undefined },
): Source['read'] {
  const oldestMs = Math.max(0, Math.floor(fromMs));
  /** What was read and is after the position of the last call. */
  let found: Candidate[] = [];
  /** Where reading goes on; undefined at first, null at the end. */
  let start: string | null | undefined;
  let lastMs = Number.POSITIVE_INFINITY;
  return async (after, count) => {
    const newestMs = Math.min(toMs, after?.ms ?? toMs);
    if (start === undefined) start = newestMs === Number.MAX_SAFE_INTEGER ? '+' : startAt(newestMs);
    const isNext = (one: Candidate) => after === undefined || newestFirst(after, one) < 0;
    found = found.filter(isNext);
    for (let size = Math.max(count, MIN_READ); start !== null; size = Math.max(count, Math.min(2 * size, MAX_READ))) {
      if (found.length >= count && found.filter(({ ms }) => ms > lastMs).length >= count) break;
      const entries = await readStreamBack(store, succeededKey(prefix), { start, oldestMs, count: size });
      for (const [entryId, [, end = '', , lag]] of entries) {
        const id = DELIVERY_ID_START + end;
        const one = { ms: Number.parseInt(entryId, 10) - Number(lag), id, item: id };
        if (one.ms >= fromMs && one.ms <= toMs && id.startsWith(idPrefix) && isNext(one)) found.push(one);
      }
      const lastId = entries.at(-1)?.[0];
      start = lastId === undefined || entries.length < size ? null : `(${lastId}`;
      lastMs = Number.parseInt(lastId ?? '0', 10);
    }
    return found.sort(newestFirst).slice(0, count);
  };
}

const startAt = (newestMs: number) => String(Math.max(0, Math.ceil(newestMs) + MAX_LAG_MS));

/** The number of deliveries with a status in a partition. */
export async function countStatus(store: Store, prefix: string, status: DeliveryStatus): Promise<number> {
  const counts = [store.redis.zcard(byStatusKey(prefix, status))];
  if (status === 'succeeded') counts.push(store.redis.xlen(succeededKey(prefix)));
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/**
 * The id in an entry of an address's stream: in full in format 1, else without what all ids of the address begin with.
 */
function idInStream(subscriptionId: string, entry: string): string {
  return DELIVERY_ID.test(entry) ? entry : deliveryIdPrefix(subscriptionId) + entry;
}

/** Newest first along a stream of deliveries. */
export function streamSource(
  store: Store,
  key: string,
  { fromMs = 0, toMs }: TimeRange,
  idOf = (entry: string) => entry,
): Source {
  const newest = toMs === undefined ? '+' : String(Math.max(0, Math.ceil(toMs) + MAX_CLOCK_SKEW_MS));
  const oldestMs = Math.max(0, Math.floor(fromMs));
  const read: Source['read'] = async (after, count) => {
    const start = after ? `(${after.ms}-${after.id}` : newest;
    const entries = await readStreamBack(store, key, { start, oldestMs, count });
    return entries.map(([entryId, [, entry = '']]) => {
      const [ms, id = ''] = entryId.split('-');
      return { ms: Number(ms), id, item: idOf(entry) };
    });
  };
  return { idForm: STREAM_SEQUENCE, read };
}

/**
 * A subscription's deliveries: along its stream, then from the sorted sets those that outlive their entry in it, since
 * they are unfinished, have failed, or have succeeded late. `nowMs` only saves looking for them among newer ones.
 */
export function addressSource(store: Store, subscriptionId: string, range: TimeRange, nowMs: number): Source {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const stream = bySubscriptionKey(prefix, subscriptionId);
  const idOf = (entry: string) => idInStream(subscriptionId, entry);
  const recent = streamSource(store, stream, range, idOf);
  const untrimmedMs = streamLimits(store, nowMs).oldestMs + MAX_CLOCK_SKEW_MS;
  const readOld = async (after: Position | undefined, count: number, toMs: number): Promise<Candidate[]> => {
    const upTo = { fromMs: range.fromMs, toMs: Math.min(range.toMs ?? toMs, toMs, untrimmedMs) };
    const ofAddress = [failedKey(prefix, subscriptionId), laneKey(prefix, 'held', subscriptionId)];
    const ofAll = ['pending', 'waiting_for_retry', 'succeeded'] as const;
    const parts = await Promise.all([
      sortedSetSource(store, DELIVERY_ID, ofAddress, upTo).read(after, count),
      statusSource(store, [prefix], ofAll, upTo, deliveryIdPrefix(subscriptionId)).read(after, count),
    ]);
    return newestAfter(parts.flat(), after, count);
  };
  const read: Source['read'] = async (after, count) => {
    const isPastStream = after !== undefined && !STREAM_SEQUENCE.test(after.id);
    const entries = isPastStream ? [] : await recent.read(after, count);
    if (entries.length === count) return entries;
    const seenMs = (entries.at(-1) ?? after)?.ms ?? Number.MAX_SAFE_INTEGER;
    const endMs = Math.min(seenMs, await oldestInStream(store, stream));
    for (let from = isPastStream ? after : undefined; ; ) {
      const missing = count - entries.length;
      const old = await readOld(from, missing, endMs);
      const inStream = await presentInStream(store, stream, idOf, old, endMs);
      entries.push(...old.filter(({ id }) => !inStream.has(id)));
      from = old.at(-1);
      if (entries.length === count || old.length < missing) return entries;
    }
  };
  return { idForm: new RegExp(`${STREAM_SEQUENCE.source}|${DELIVERY_ID.source}`), read };
}

/** The time of the oldest entry of a stream; a number larger than any time where there is none. */
async function oldestInStream(store: Store, key: string): Promise<number> {
  const [oldest] = await store.redis.xrange(key, '-', '+', 'COUNT', 1);
  return oldest === undefined ? Number.MAX_SAFE_INTEGER : Number(oldest[0].split('-')[0]);
}

/** Those of the candidates that the stream still has, at `fromMs` or a little later: they are in the list already. */
async function presentInStream(
  store: Store,
  key: string,
  idOf: (entry: string) => string,
  candidates: Candidate[],
  fromMs: number,
): Promise<Set<string>> {
  if (!candidates.some(({ ms }) => ms >= fromMs - MAX_CLOCK_SKEW_MS)) return new Set();
  const missing = new Set(candidates.map(({ id }) => id));
  const present = new Set<string>();
  for (let start = String(fromMs); missing.size > 0; ) {
    const entries = await store.redis.xrange(key, start, fromMs + MAX_CLOCK_SKEW_MS, 'COUNT', MAX_READ);
    for (const [, [, entry = '']] of entries) {
      const id = idOf(entry);
      if (missing.delete(id)) present.add(id);
    }
    if (entries.length < MAX_READ) break;
    start = `(${entries.at(-1)?.[0]}`;
  }
  return present;
}
