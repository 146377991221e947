/** Lists of deliveries and subscriptions, newest first, a page at a time, from indexes alone. */
import {
  DELIVERY_ID,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  deliveryId,
  deliveryIdPrefix,
  type Environment,
  type EventType,
  REPLAY_ID,
  type Replay,
  SUBSCRIPTION_ID,
  SUBSCRIPTION_STATUSES,
  type Subscription,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from '@posthorn/core';
import { loadDeliveries, type StoredDelivery } from './delivery-record.ts';
import { findEvents } from './events.ts';
import {
  allPrefixes,
  byStatusKey,
  bySubscriptionKey,
  failedKey,
  laneKey,
  prefixOfSubscription,
  replaysKey,
  subscriptionsKey,
} from './keys.ts';
import { newestFirst, type Page, type Position, readPage, type Source } from './page.ts';
import { loadReplays, replaysOf } from './replays.ts';
import type { Store } from './store.ts';
import { loadSubscriptions, type StoredSubscription } from './subscriptions.ts';

export interface DeliveryFilter {
  subscriptionId?: string | undefined;
  eventId?: string | undefined;
  environment?: Environment | undefined;
  eventType?: EventType | undefined;
  status?: DeliveryStatus | undefined;
  /** Creation time in milliseconds, both ends included. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

/** Ids of other addresses that a list passes over at most, and in one command: some tens of milliseconds in all. */
const MAX_PASSED_OVER = 100_000;
const PASSED_OVER_AT_ONCE = 2_000;

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
    (filter.environment === undefined || delivery.environment === filter.environment) &&
    (filter.eventType === undefined || delivery.eventType === filter.eventType) &&
    (filter.status === undefined || delivery.status === filter.status) &&
    (filter.fromMs === undefined || delivery.createdAtMs >= filter.fromMs) &&
    (filter.toMs === undefined || delivery.createdAtMs <= filter.toMs);
  return await readPage(await sourceOf(store, filter), (ids) => loadDeliveries(store, ids), wanted, limit, cursor);
}

/** The index with the fewest candidates for a filter. */
async function sourceOf(store: Store, filter: DeliveryFilter): Promise<Source> {
  const { subscriptionId, eventId, status } = filter;
  if (eventId !== undefined) return eventSource(store, eventId);
  if (subscriptionId !== undefined) {
    const prefix = prefixOfSubscription(store, subscriptionId);
    if (status === 'failed') return sortedSetSource(store, DELIVERY_ID, [failedKey(prefix, subscriptionId)], filter);
    if (status === 'held')
      return sortedSetSource(store, DELIVERY_ID, [laneKey(prefix, 'held', subscriptionId)], filter);
    const own = bySubscriptionKey(prefix, subscriptionId);
    if (status === undefined) return streamSource(store, own, filter);
    // No index has both. That of all with this status needs no look at the records of other addresses, unless it is long.
    const ofAll = byStatusKey(prefix, status);
    if ((await store.redis.zcard(ofAll)) > MAX_PASSED_OVER) return streamSource(store, own, filter);
    return sortedSetSource(store, DELIVERY_ID, [ofAll], filter, deliveryIdPrefix(subscriptionId));
  }
  const statuses = status === undefined ? DELIVERY_STATUSES : [status];
  const keys = allPrefixes(store).flatMap((prefix) => statuses.map((each) => byStatusKey(prefix, each)));
  return sortedSetSource(store, DELIVERY_ID, keys, filter);
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
  const keys = allPrefixes(store).flatMap((prefix) => statuses.map((status) => subscriptionsKey(prefix, status)));
  const wanted = (subscription: Subscription) =>
    (filter.status === undefined || subscription.status === filter.status) &&
    (filter.environment === undefined || subscription.environment === filter.environment);
  return await readPage(
    sortedSetSource(store, SUBSCRIPTION_ID, keys, {}),
    (ids) => loadSubscriptions(store, ids),
    wanted,
    limit,
    cursor,
  );
}

/** A page of bulk replays, newest first. Throws `BadCursor`. */
export async function listReplays(
  store: Store,
  filter: { subscriptionId?: string | undefined },
  limit: number,
  cursor?: string,
): Promise<Page<Replay>> {
  const keys = allPrefixes(store).map((prefix) => replaysKey(prefix));
  const wanted = (replay: Replay) =>
    filter.subscriptionId === undefined || replay.subscriptionId === filter.subscriptionId;
  const source = sortedSetSource(store, REPLAY_ID, keys, {});
  return await readPage(source, (ids) => loadReplays(store, ids), wanted, limit, cursor);
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
    allPrefixes(store).map((prefix) => store.redis.zrange(byStatusKey(prefix, 'pending'), '0', '0', 'WITHSCORES')),
  );
  const times = oldest.flatMap(([, score]) => (score === undefined ? [] : [Number(score)]));
  return times.length === 0 ? undefined : Math.min(...times);
}

async function countBy<S extends string>(
  store: Store,
  statuses: readonly S[],
  keyOf: (prefix: string, status: string) => string,
): Promise<Record<S, number>> {
  const counts = await Promise.all(
    statuses.map(async (status) => {
      const each = await Promise.all(allPrefixes(store).map((prefix) => store.redis.zcard(keyOf(prefix, status))));
      return [status, each.reduce((sum, n) => sum + n, 0)] as const;
    }),
  );
  return Object.fromEntries(counts) as Record<S, number>;
}

/** Newest first by (time, id) over several sorted sets at once; of those ids alone that begin with `idPrefix`. */
function sortedSetSource(
  store: Store,
  idForm: RegExp,
  keys: string[],
  range: Pick<DeliveryFilter, 'fromMs' | 'toMs'>,
  idPrefix = '',
): Source {
  const read: Source['read'] = async (after, count) => {
    const max = Math.min(after?.ms ?? Number.POSITIVE_INFINITY, range.toMs ?? Number.POSITIVE_INFINITY);
    const min = range.fromMs ?? '-inf';
    const parts = await Promise.all(keys.map((key) => readSortedSet(store, key, max, min, after, count, idPrefix)));
    return parts.flat().sort(newestFirst).slice(0, count);
  };
  return { idForm, read };
}

async function readSortedSet(
  store: Store,
  key: string,
  max: number,
  min: number | string,
  after: Position | undefined,
  count: number,
  idPrefix: string,
): Promise<(Position & { item: string })[]> {
  const found: (Position & { item: string })[] = [];
  // Many may share one millisecond (a large fan-out): those up to the position are passed over.
  for (let offset = 0; found.length < count; ) {
    const top = max === Number.POSITIVE_INFINITY ? '+inf' : max;
    const size = idPrefix === '' ? count : PASSED_OVER_AT_ONCE;
    const flat = await store.redis.zrevrangebyscore(key, top, min, 'WITHSCORES', 'LIMIT', offset, size);
    for (let i = 0; i < flat.length; i += 2) {
      const place = { ms: Number(flat[i + 1]), id: flat[i]!, item: flat[i]! };
      if (place.id.startsWith(idPrefix) && (after === undefined || newestFirst(after, place) < 0)) found.push(place);
    }
    if (flat.length < 2 * size) break;
    offset += size;
  }
  return found.slice(0, count);
}

/** The second half of a stream entry's id, which Redis takes up to 2^64; in a millisecond nobody gets near this. */
const STREAM_SEQUENCE = /^\d{1,16}$/;

/** Newest first along a subscription's stream. Its ids may run a little ahead of creation times (clocks), so the ends get some room. */
function streamSource(store: Store, key: string, range: Pick<DeliveryFilter, 'fromMs' | 'toMs'>): Source {
  const roomMs = 60_000;
  const read: Source['read'] = async (after, count) => {
    const start = after
      ? `(${after.ms}-${after.id}`
      : range.toMs === undefined
        ? '+'
        : `${Math.max(0, Math.ceil(range.toMs) + roomMs)}`;
    const end = range.fromMs === undefined ? '-' : `${Math.max(0, Math.floor(range.fromMs))}`;
    const entries = await store.redis.xrevrange(key, start, end, 'COUNT', count);
    return entries.map(([entryId, fields]) => {
      const [ms, sequence] = entryId.split('-');
      return { ms: Number(ms), id: sequence!, item: fields[1]! };
    });
  };
  return { idForm: STREAM_SEQUENCE, read };
}

/** The deliveries of the events with one id: worked out from the subscriptions it was matched to, and their replays. */
function eventSource(store: Store, eventId: string): Source {
  const read: Source['read'] = async (after, count) => {
    const events = await findEvents(store, eventId);
    const deliveries = await Promise.all(
      events.flatMap(({ ref, acceptedAtMs, subscriptionIds }) =>
        subscriptionIds.map(async (id) => [
          { id: deliveryId(ref, id), createdAtMs: acceptedAtMs },
          ...(await replaysOf(store, ref, id)),
        ]),
      ),
    );
    return deliveries
      .flat()
      .map(({ id, createdAtMs }) => ({ ms: createdAtMs, id, item: id }))
      .filter((place) => after === undefined || newestFirst(after, place) < 0)
      .sort(newestFirst)
      .slice(0, count);
  };
  return { idForm: DELIVERY_ID, read };
}
