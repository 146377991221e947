/** Lists of deliveries and subscriptions, newest first, a page at a time, from indexes alone. */
import {
  DELIVERY_STATUSES,
  type DeliveryStatus,
  deliveryId,
  partitionOf,
  SUBSCRIPTION_STATUSES,
  type Subscription,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from '@posthorn/core';
import { loadDeliveries, type StoredDelivery } from './deliveries.ts';
import { loadEvent } from './events.ts';
import { byStatusKey, bySubscriptionKey, failedKey, laneKey, subscriptionsKey } from './keys.ts';
import { allPartitions, baseOf, type Store } from './store.ts';
import { loadSubscriptions, type StoredSubscription } from './subscriptions.ts';

export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

export interface DeliveryFilter {
  subscriptionId?: string | undefined;
  eventId?: string | undefined;
  status?: DeliveryStatus | undefined;
  /** Creation time in milliseconds, both ends included. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

/** The cursor did not come from a list. */
export class BadCursor extends Error {
  override name = 'BadCursor';
}

/** A place in a list: the creation time and the id of the last item seen, or the stream's entry id in place of the delivery's. */
interface Position {
  ms: number;
  id: string;
}

/** Some candidates from a place onwards, newest first, each with its own place; fewer than asked for only at the end. */
type Source = (after: Position | undefined, count: number) => Promise<(Position & { item: string })[]>;

/**
 * The most candidates one call looks at. A filter that rejects nearly all of a long list then gives a short page with a
 * cursor, instead of a long wait.
 */
const MOST_LOOKED_AT = 5_000;

/** A page of deliveries. Throws `BadCursor`. */
export async function listDeliveries(
  store: Store,
  filter: DeliveryFilter,
  limit: number,
  cursor?: string,
): Promise<Page<StoredDelivery>> {
  const wanted = (delivery: StoredDelivery) =>
    (filter.subscriptionId === undefined || delivery.subscriptionId === filter.subscriptionId) &&
    (filter.eventId === undefined || delivery.eventId === filter.eventId) &&
    (filter.status === undefined || delivery.status === filter.status) &&
    (filter.fromMs === undefined || delivery.createdAtMs >= filter.fromMs) &&
    (filter.toMs === undefined || delivery.createdAtMs <= filter.toMs);
  return await readPage(sourceOf(store, filter), (ids) => loadDeliveries(store, ids), wanted, limit, cursor);
}

/** The index that answers a filter with the fewest candidates. */
function sourceOf(store: Store, filter: DeliveryFilter): Source {
  const { subscriptionId, eventId, status } = filter;
  if (eventId !== undefined) return eventSource(store, eventId);
  if (subscriptionId !== undefined) {
    const base = baseOf(store, partitionOf(subscriptionId, store.partitions));
    if (status === 'failed') return sortedSetSource(store, [failedKey(base, subscriptionId)], filter);
    if (status === 'held') return sortedSetSource(store, [laneKey(base, 'held', subscriptionId)], filter);
    return streamSource(store, bySubscriptionKey(base, subscriptionId), filter);
  }
  const statuses = status === undefined ? DELIVERY_STATUSES : [status];
  const keys = allPartitions(store).flatMap((partition) =>
    statuses.map((one) => byStatusKey(baseOf(store, partition), one)),
  );
  return sortedSetSource(store, keys, filter);
}

export interface SubscriptionFilter {
  status?: SubscriptionStatus | undefined;
  environment?: SubscriptionEnvironment | undefined;
}

/** A page of subscriptions. Throws `BadCursor`. */
export async function listSubscriptions(
  store: Store,
  filter: SubscriptionFilter,
  limit: number,
  cursor?: string,
): Promise<Page<StoredSubscription>> {
  const statuses = filter.status === undefined ? SUBSCRIPTION_STATUSES : [filter.status];
  const keys = allPartitions(store).flatMap((partition) =>
    statuses.map((status) => subscriptionsKey(baseOf(store, partition), status)),
  );
  const wanted = (subscription: Subscription) =>
    (filter.status === undefined || subscription.status === filter.status) &&
    (filter.environment === undefined || subscription.environment === filter.environment);
  return await readPage(
    sortedSetSource(store, keys, {}),
    (ids) => loadSubscriptions(store, ids),
    wanted,
    limit,
    cursor,
  );
}

/** What is waiting and what is there, for gauges and overviews: a handful of counts, whatever the volume. */
export async function readBacklog(store: Store, nowMs: number) {
  const [deliveries, subscriptions, oldestMs] = await Promise.all([
    countBy(store, DELIVERY_STATUSES, byStatusKey),
    countBy(store, SUBSCRIPTION_STATUSES, subscriptionsKey),
    oldestPending(store),
  ]);
  return { deliveries, subscriptions, oldestPendingAgeMs: oldestMs === undefined ? 0 : Math.max(0, nowMs - oldestMs) };
}

/** When the oldest delivery that has had no attempt yet was made, or undefined where there is none. */
async function oldestPending(store: Store): Promise<number | undefined> {
  const oldest = await Promise.all(
    allPartitions(store).map((partition) =>
      store.redis.zrange(byStatusKey(baseOf(store, partition), 'pending'), '0', '0', 'WITHSCORES'),
    ),
  );
  const times = oldest.flatMap(([, score]) => (score === undefined ? [] : [Number(score)]));
  return times.length === 0 ? undefined : Math.min(...times);
}

async function countBy<S extends string>(
  store: Store,
  statuses: readonly S[],
  keyOf: (base: string, status: string) => string,
): Promise<Record<S, number>> {
  const counts = await Promise.all(
    statuses.map(async (status) => {
      const each = await Promise.all(
        allPartitions(store).map((partition) => store.redis.zcard(keyOf(baseOf(store, partition), status))),
      );
      return [status, each.reduce((sum, n) => sum + n, 0)] as const;
    }),
  );
  return Object.fromEntries(counts) as Record<S, number>;
}

async function readPage<T extends { id: string }>(
  source: Source,
  load: (ids: string[]) => Promise<(T | undefined)[]>,
  wanted: (item: T) => boolean,
  limit: number,
  cursor: string | undefined,
): Promise<Page<T>> {
  let after = cursor === undefined ? undefined : decodeCursor(cursor);
  const items = new Map<string, T>();
  for (let lookedAt = 0; lookedAt < MOST_LOOKED_AT; ) {
    const candidates = await source(after, limit + 1);
    const loaded = await load(candidates.map(({ item }) => item));
    for (const [i, candidate] of candidates.entries()) {
      const item = loaded[i];
      if (item !== undefined && wanted(item) && !items.has(item.id)) {
        // One more is there: the page ends before it.
        if (items.size === limit) return { items: [...items.values()], nextCursor: encodeCursor(after!) };
        items.set(item.id, item);
      }
      after = candidate;
    }
    if (candidates.length <= limit) return { items: [...items.values()], nextCursor: null };
    lookedAt += candidates.length;
  }
  return { items: [...items.values()], nextCursor: encodeCursor(after!) };
}

/** Newest first by (time, id) over several sorted sets at once. */
function sortedSetSource(store: Store, keys: string[], range: Pick<DeliveryFilter, 'fromMs' | 'toMs'>): Source {
  return async (after, count) => {
    const max = Math.min(after?.ms ?? Number.POSITIVE_INFINITY, range.toMs ?? Number.POSITIVE_INFINITY);
    const min = range.fromMs ?? '-inf';
    const parts = await Promise.all(keys.map((key) => readSortedSet(store, key, max, min, after, count)));
    return parts.flat().sort(newestFirst).slice(0, count);
  };
}

async function readSortedSet(
  store: Store,
  key: string,
  max: number,
  min: number | string,
  after: Position | undefined,
  count: number,
): Promise<(Position & { item: string })[]> {
  const found: (Position & { item: string })[] = [];
  // Many may share one millisecond (a large fan-out): those up to the position are passed over.
  for (let offset = 0; found.length < count; ) {
    const top = max === Number.POSITIVE_INFINITY ? '+inf' : max;
    const size = Math.max(count, 250);
    const flat = await store.redis.zrevrangebyscore(key, top, min, 'WITHSCORES', 'LIMIT', offset, size);
    for (let i = 0; i < flat.length; i += 2) {
      const place = { ms: Number(flat[i + 1]), id: flat[i]!, item: flat[i]! };
      if (after === undefined || newestFirst(after, place) < 0) found.push(place);
    }
    if (flat.length < 2 * size) break;
    offset += size;
  }
  return found.slice(0, count);
}

/** Newest first along a subscription's stream. Its ids may run a little ahead of creation times (clocks), so the ends get some room. */
function streamSource(store: Store, key: string, range: Pick<DeliveryFilter, 'fromMs' | 'toMs'>): Source {
  const roomMs = 60_000;
  return async (after, count) => {
    const start = after
      ? `(${after.ms}-${after.id}`
      : range.toMs === undefined
        ? '+'
        : `${Math.ceil(range.toMs) + roomMs}`;
    const end = range.fromMs === undefined ? '-' : `${Math.max(0, Math.floor(range.fromMs))}`;
    const entries = await store.redis.xrevrange(key, start, end, 'COUNT', count);
    return entries.map(([entryId, fields]) => {
      const [ms, sequence] = entryId.split('-');
      return { ms: Number(ms), id: sequence!, item: fields[1]! };
    });
  };
}

/** The deliveries of one event: worked out from the subscriptions it was matched to. */
function eventSource(store: Store, eventId: string): Source {
  return async (after, count) => {
    const stored = await loadEvent(store, eventId);
    if (!stored) return [];
    const ms = stored.acceptedAtMs;
    return stored.subscriptionIds
      .map((subscriptionId) => deliveryId(eventId, subscriptionId))
      .map((id) => ({ ms, id, item: id }))
      .filter((place) => after === undefined || newestFirst(after, place) < 0)
      .sort(newestFirst)
      .slice(0, count);
  };
}

/** Redis orders members of equal score by their bytes; so does this. */
function newestFirst(a: Position, b: Position): number {
  return b.ms - a.ms || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

function encodeCursor({ ms, id }: Position): string {
  return Buffer.from(`${ms} ${id}`).toString('base64url');
}

function decodeCursor(cursor: string): Position {
  const match = /^(\d{1,16}) ([A-Za-z0-9_-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString());
  if (!match) throw new BadCursor('Not a cursor of this list');
  return { ms: Number(match[1]), id: match[2]! };
}
