/** Lists of deliveries, subscriptions, bulk replays and erasures, newest first, in pages, from indexes alone. */
import {
  chunksOf,
  DELIVERY_ID,
  DELIVERY_STATUSES,
  type Delivery,
  deliveryId,
  deliveryIdPrefix,
  ERASURE_ID,
  type Erasure,
  type FailureReason,
  REPLAY_ID,
  type Replay,
  SUBSCRIPTION_ID,
  SUBSCRIPTION_STATUSES,
  type Subscription,
} from '@posthorn/core';
import { loadDeliveries, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { loadErasures } from '../erasures/erasures.ts';
import { findEvents } from '../events/events.ts';
import {
  allPrefixes,
  erasuresKey,
  failedKey,
  laneKey,
  partitionPrefix,
  prefixOfId,
  prefixOfSubscription,
  replayDeliveriesKey,
  replaysKey,
  subscriptionsKeys,
} from '../keys.ts';
import { loadBatch } from '../replays/replay-batches.ts';
import { loadReplays } from '../replays/replay-record.ts';
import { replaysOfAll } from '../replays/replays.ts';
import type { Store } from '../store.ts';
import { loadSubscriptions, type StoredSubscription } from '../subscriptions/subscriptions.ts';
import { positionIn, sortInSlices } from './in-slices.ts';
import {
  type Candidate,
  type Filter,
  matches,
  newestAfter,
  newestFirst,
  type Page,
  type PageRequest,
  readPage,
  type Source,
  type TimeRange,
} from './page.ts';
import { addressSource, countStatus, sortedSetSource, statusSource, streamSource } from './sources.ts';

export type DeliveryFilter = TimeRange &
  Filter<Delivery, 'subscriptionId' | 'eventId' | 'environment' | 'eventType' | 'status'> & {
    failureReason?: FailureReason | undefined;
    /** Only those that this bulk replay made. */
    replayId?: string | undefined;
  };

/** Ids of other addresses that a list passes over at most: some tens of milliseconds in all. */
const MAX_PASSED_OVER = 100_000;
/** Ids of deliveries that are made, and looked up, in one turn of the event loop: a few milliseconds. */
const IDS_AT_ONCE = 500;
/** Subscriptions that are read at once where all are. */
const PAGE_OF_ALL = 200;

/** A page of deliveries. `nowMs` only makes old ones of an address cheaper to find. Throws `BadCursor`. */
export async function listDeliveries(
  store: Store,
  filter: DeliveryFilter,
  request: PageRequest,
  nowMs = Number.MAX_SAFE_INTEGER,
): Promise<Page<StoredDelivery>> {
  const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY, replayId: _, ...values } = filter;
  const isWanted = (delivery: StoredDelivery) =>
    matches(delivery, values) && delivery.createdAtMs >= fromMs && delivery.createdAtMs <= toMs;
  return await readPage(await sourceOf(store, filter, nowMs), (ids) => loadDeliveries(store, ids), isWanted, request);
}

/** The index with the fewest candidates for a filter. */
async function sourceOf(store: Store, filter: DeliveryFilter, nowMs: number): Promise<Source> {
  const { subscriptionId, eventId, replayId, failureReason } = filter;
  const status = failureReason === undefined ? filter.status : 'failed';
  if (replayId !== undefined) {
    const key = replayDeliveriesKey(prefixOfId(store, replayId), replayId);
    return streamSource(store, key, filter);
  }
  if (eventId !== undefined) return eventSource(store, eventId, { subscriptionId, environment: filter.environment });
  const sorted = (key: string) => sortedSetSource(store, DELIVERY_ID, [key], filter);
  if (subscriptionId === undefined) {
    const statuses = status === undefined ? DELIVERY_STATUSES : [status];
    return statusSource(store, allPrefixes(store), statuses, filter);
  }
  const prefix = prefixOfSubscription(store, subscriptionId);
  if (status === 'failed') return sorted(failedKey(prefix, subscriptionId));
  if (status === 'held') return sorted(laneKey(prefix, 'held', subscriptionId));
  // No index has both an address and another status. The index of the status needs no look at the records of other
  // addresses, unless it is long.
  if (status === undefined || (await countStatus(store, prefix, status)) > MAX_PASSED_OVER)
    return addressSource(store, subscriptionId, filter, nowMs);
  return statusSource(store, [prefix], [status], filter, deliveryIdPrefix(subscriptionId));
}

/** A page of subscriptions. Throws `BadCursor`. */
export async function listSubscriptions(
  store: Store,
  filter: Filter<Subscription, 'status' | 'environment'>,
  request: PageRequest,
): Promise<Page<StoredSubscription>> {
  const statuses = filter.status === undefined ? SUBSCRIPTION_STATUSES : [filter.status];
  const keys = allPrefixes(store).flatMap((prefix) => statuses.flatMap((status) => subscriptionsKeys(prefix, status)));
  const { status, environment } = filter;
  const source = sortedSetSource(store, SUBSCRIPTION_ID, keys);
  const isWanted = (subscription: Subscription) => matches(subscription, { status, environment });
  return await readPage(source, (ids) => loadSubscriptions(store, ids), isWanted, request);
}

/** Every subscription, read a page at a time as they are needed. */
export async function* allSubscriptions(store: Store): AsyncGenerator<StoredSubscription> {
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await listSubscriptions(store, {}, { limit: PAGE_OF_ALL, cursor });
    yield* items;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
}

/** A page of bulk replays, newest first. Throws `BadCursor`. */
export async function listReplays(
  store: Store,
  filter: Filter<Replay, 'subscriptionId' | 'batchId'>,
  request: PageRequest,
): Promise<Page<Replay>> {
  const { batchId } = filter;
  const source =
    batchId == null
      ? sortedSetSource(store, REPLAY_ID, allPrefixes(store).map(replaysKey))
      : batchSource(store, batchId);
  const isWanted = (replay: Replay) => matches(replay, filter);
  return await readPage(source, (ids) => loadReplays(store, ids), isWanted, request);
}

/** The replays of a batch, from its record. */
function batchSource(store: Store, batchId: string): Source {
  const read: Source['read'] = async (after, count) => {
    const { members = [], createdAtMs = 0 } = (await loadBatch(store, batchId)) ?? {};
    const candidates = members.map(({ replayId: id }) => ({ ms: createdAtMs, id, item: id }));
    return newestAfter(candidates, after, count);
  };
  return { idForm: REPLAY_ID, read };
}

/**
 * A page of erasures, newest first; with `hmacs`, those of the value that has one of these hashes. Throws `BadCursor`.
 */
export async function listErasures(
  store: Store,
  hmacs: readonly string[] | undefined,
  request: PageRequest,
): Promise<Page<Erasure>> {
  const source = sortedSetSource(store, ERASURE_ID, [erasuresKey(partitionPrefix(store, 0))]);
  const isWanted = ({ valueHmac }: Erasure) => hmacs === undefined || hmacs.includes(valueHmac);
  return await readPage(source, (ids) => loadErasures(store, ids), isWanted, request);
}

/**
 * The deliveries of the events with one id: their ids follow from the subscriptions that each event was matched to;
 * then their replays. They are found once for all chunks of a list, since an event may have tens of thousands.
 */
function eventSource(store: Store, eventId: string, only: Filter<Delivery, 'subscriptionId' | 'environment'>): Source {
  let candidates: Promise<Candidate[]> | undefined;
  const read: Source['read'] = async (after, count) => {
    candidates ??= candidatesOf(store, eventId, only);
    const all = await candidates;
    const start = after === undefined ? 0 : positionIn(all, (candidate) => newestFirst(after, candidate) < 0);
    return all.slice(start, start + count);
  };
  return { idForm: DELIVERY_ID, read };
}

/** Newest first. */
async function candidatesOf(
  store: Store,
  eventId: string,
  { subscriptionId, environment }: Filter<Delivery, 'subscriptionId' | 'environment'>,
): Promise<Candidate[]> {
  const events = (await findEvents(store, eventId)).filter(({ event }) => matches(event, { environment }));
  const found: Candidate[] = [];
  for (const { ref, acceptedAtMs, subscriptionIds } of events) {
    const ids = subscriptionId === undefined ? subscriptionIds : subscriptionIds.filter((id) => id === subscriptionId);
    for (const some of chunksOf(ids, IDS_AT_ONCE)) {
      const first = some.map((id) => deliveryId(ref, id));
      for (const id of first) found.push({ ms: acceptedAtMs, id, item: id });
      for (const { id, createdAtMs } of await replaysOfAll(store, first)) found.push({ ms: createdAtMs, id, item: id });
    }
  }
  return await sortInSlices(found, newestFirst);
}
