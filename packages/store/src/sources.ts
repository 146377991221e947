/** The indexes that lists of deliveries and others are read from, each as a source of candidates, newest first. */
import { DELIVERY_ID, deliveryIdPrefix } from '@posthorn/core';
import { byStatusKey, bySubscriptionKey, failedKey, laneKey, prefixOfSubscription } from './keys.ts';
import { streamLimits } from './new-deliveries.ts';
import { type Candidate, newestAfter, type Position, type Source, type TimeRange } from './page.ts';
import { scanSortedSet } from './sorted-set.ts';
import type { Store } from './store.ts';

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

/** The second half of a stream entry's id. Redis allows up to 2^64; no millisecond has nearly as many entries as this allows. */
const STREAM_SEQUENCE = /^\d{1,16}$/;

/** How far the ids of a stream may run ahead of creation times: the clocks of processes differ. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** Newest first along a stream of deliveries. */
export function streamSource(store: Store, key: string, { fromMs = 0, toMs }: TimeRange): Source {
  const newest = toMs === undefined ? '+' : Math.max(0, Math.ceil(toMs) + MAX_CLOCK_SKEW_MS);
  const oldest = Math.max(0, Math.floor(fromMs));
  const read: Source['read'] = async (after, count) => {
    const start = after ? `(${after.ms}-${after.id}` : newest;
    const entries = await store.redis.xrevrange(key, start, oldest, 'COUNT', count);
    return entries.map(([entryId, [, item = '']]) => {
      const [ms, id = ''] = entryId.split('-');
      return { ms: Number(ms), id, item };
    });
  };
  return { idForm: STREAM_SEQUENCE, read };
}

/**
 * A subscription's deliveries: along its stream, then from the sorted sets those that outlive their entry in it, since they are unfinished, have
 * failed, or have succeeded late. `nowMs` only saves looking for them among newer ones.
 */
export function addressSource(store: Store, subscriptionId: string, range: TimeRange, nowMs: number): Source {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const stream = bySubscriptionKey(prefix, subscriptionId);
  const recent = streamSource(store, stream, range);
  const untrimmedMs = streamLimits(store, nowMs).oldestMs + MAX_CLOCK_SKEW_MS;
  const readOld = async (after: Position | undefined, count: number, toMs: number): Promise<Candidate[]> => {
    const upTo = { fromMs: range.fromMs, toMs: Math.min(range.toMs ?? toMs, toMs, untrimmedMs) };
    const ofAddress = [failedKey(prefix, subscriptionId), laneKey(prefix, 'held', subscriptionId)];
    const ofAll = ['pending', 'waiting_for_retry', 'succeeded'].map((status) => byStatusKey(prefix, status));
    const parts = await Promise.all([
      sortedSetSource(store, DELIVERY_ID, ofAddress, upTo).read(after, count),
      sortedSetSource(store, DELIVERY_ID, ofAll, upTo, deliveryIdPrefix(subscriptionId)).read(after, count),
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
      const inStream = await presentInStream(store, stream, old, endMs);
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
  candidates: Candidate[],
  fromMs: number,
): Promise<Set<string>> {
  if (!candidates.some(({ ms }) => ms >= fromMs - MAX_CLOCK_SKEW_MS)) return new Set();
  const entries = await store.redis.xrange(key, fromMs, fromMs + MAX_CLOCK_SKEW_MS);
  return new Set(entries.map(([, [, id = '']]) => id));
}
