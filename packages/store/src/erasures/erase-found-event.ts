/** Erases one event that an erasure has found: first its deliveries, then its payload. */
import {
  chunksOf,
  type Erasure,
  type EventRef,
  eachInTurn,
  isFinished,
  partitionOf,
  type SearchTerm,
  StorageUnavailable,
  sessionFacts,
  termsOf,
} from '@posthorn/core';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { deliveryIdsOf } from '../events/deliveries-of-event.ts';
import { encodeErased, type StoredEvent } from '../events/event-record.ts';
import { keepEvent, loadEvent, prefixOfEvent } from '../events/events.ts';
import { entriesToRemove } from '../events/search-index.ts';
import * as keys from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { DELIVERIES_AT_ONCE, LONGEST_WAIT_MS } from './erasure-events.ts';

/** A worker has one of its jobs, or ingest makes more deliveries: looked at again after this. */
const SOON_MS = 1_000;
/** Its deliveries are to be sent first. */
const WHEN_SENT_MS = 10_000;
/** It can't be erased, for example because one of its deliveries can't be read. */
const AFTER_FAILURE_MS = LONGEST_WAIT_MS;

/**
 * Erases an event that an erasure has found. If it has to wait, it is looked at again later: for its fan-out, for a job
 * that a worker has, or, if the erasure lets unsent deliveries be sent, for the end of all of them. Returns the number
 * of its deliveries.
 *
 * A delivery that is marked is replayed no more, so once all are marked there will be no new ones, and no attempt needs
 * the payload. A crash leaves the event among those to erase: the same steps follow again, and each changes only what
 * it finds unchanged. Also after an error other than `StorageUnavailable` it is looked at again later, so that events
 * that can't be erased do not hold up the others.
 */
export async function eraseFoundEvent(
  store: Store,
  erasure: Pick<Erasure, 'id' | 'unsent'>,
  event: EventRef,
  nowMs: number,
): Promise<number> {
  try {
    return await tryToErase(store, erasure, event, nowMs);
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) await lookLater(store, erasure.id, event, nowMs + AFTER_FAILURE_MS);
    throw error;
  }
}

async function tryToErase(
  store: Store,
  { id, unsent }: Pick<Erasure, 'id' | 'unsent'>,
  event: EventRef,
  nowMs: number,
): Promise<number> {
  const stored = await loadEvent(store, event);
  if (!stored || stored.erasedAtMs !== undefined) {
    await forgetEvent(store, id, event);
    return 0;
  }
  const waitMs = await prepare(store, stored, unsent, nowMs);
  const counts = { deliveries: 0, ended: 0, responses: 0 };
  let isReady = waitMs === 0;
  for await (const part of deliveriesToErase(store, stored)) {
    counts.deliveries += part.length;
    counts.ended += part.filter(({ failureReason }) => failureReason === 'erased').length;
    counts.responses += part.filter(({ hadResponses }) => hadResponses).length;
    // A replay was made before the delivery that it replays was marked.
    if (part.some((delivery) => !isFinished(delivery.status) || !delivery.erased)) isReady = false;
  }
  if (isReady) await eraseEvent(store, id, stored, counts, nowMs);
  else await lookLater(store, id, event, nowMs + (waitMs || SOON_MS));
  return counts.deliveries;
}

/** Ends and marks the deliveries of an event. Returns 0, or the time after which to look again. */
async function prepare(store: Store, stored: StoredEvent, unsent: Erasure['unsent'], nowMs: number): Promise<number> {
  if (await isFanningOut(store, stored.ref)) return SOON_MS;
  if (unsent === 'deliver' && (await hasUnsent(store, stored))) return WHEN_SENT_MS;
  let left = 0;
  for await (const part of deliveriesToErase(store, stored))
    left += await erasePart(store, part, unsent === 'end', nowMs);
  if (left === 0) return 0;
  return unsent === 'deliver' ? WHEN_SENT_MS : SOON_MS;
}

/** Does what `eraseDeliveries` does, in all partitions. */
async function erasePart(
  store: Store,
  part: readonly StoredDelivery[],
  endsUnsent: boolean,
  nowMs: number,
): Promise<number> {
  let left = 0;
  const byPartition = Map.groupBy(part, ({ subscriptionId }) => partitionOf(subscriptionId, store.partitions));
  for (const [partition, deliveries] of byPartition)
    left += await eraseDeliveries(store, partition, deliveries, endsUnsent, nowMs);
  return left;
}

/**
 * Ends and marks the deliveries of erased events again, where a failover of one master of a Cluster has undone that:
 * their event is on another one, and without its payload no search finds it.
 */
export async function eraseAgain(store: Store, erased: readonly StoredEvent[], nowMs: number): Promise<void> {
  if (store.partitions === 1 || store.spansPartitions) return;
  await eachInTurn(erased, async (stored) => {
    for await (const part of deliveriesToErase(store, stored)) {
      await erasePart(
        store,
        part.filter((one) => !one.erased),
        true,
        nowMs,
      );
    }
  });
}

async function hasUnsent(store: Store, stored: StoredEvent): Promise<boolean> {
  for await (const part of deliveriesToErase(store, stored)) if (part.some(isUnsent)) return true;
  return false;
}

const isUnsent = ({ status }: StoredDelivery) => !isFinished(status);

/**
 * All deliveries of an event, replays included, in parts of some hundred. Their ids follow from the event and its
 * subscriptions.
 */
async function* deliveriesToErase(
  store: Store,
  { ref, subscriptionIds }: StoredEvent,
): AsyncGenerator<StoredDelivery[]> {
  for (const part of chunksOf(subscriptionIds, DELIVERIES_AT_ONCE)) {
    yield await loadExisting(store, await deliveryIdsOf(store, ref, part));
  }
}

/** Leaves an event of an erasure until `atMs`. */
async function lookLater(store: Store, id: string, event: EventRef, atMs: number): Promise<void> {
  await store.redis.zadd(keys.erasureEventsKey(prefixOfEvent(store, event), id), 'XX', atMs, event);
}

/** Forgets an event of an erasure that has nothing to erase any more. */
async function forgetEvent(store: Store, id: string, event: EventRef): Promise<void> {
  await store.redis.zrem(keys.erasureEventsKey(prefixOfEvent(store, event), id), event);
}

/** Whether deliveries of an event may still be made: its fan-out is not confirmed. */
async function isFanningOut(store: Store, event: EventRef): Promise<boolean> {
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
  const unsent = endsUnsent ? deliveries.find(isUnsent) : undefined;
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

/**
 * Erases the payload of an event all of whose deliveries are marked, and counts them. Counts once if it is repeated.
 */
export async function eraseEvent(
  store: Store,
  id: string,
  stored: StoredEvent,
  counts: { deliveries: number; ended: number; responses: number },
  nowMs: number,
): Promise<void> {
  const { ref, event } = stored;
  await runScript(store, 'eraseEvent', prefixOfEvent(store, ref), {
    id,
    event: ref,
    text: encodeErased(stored, nowMs),
    ...entriesToRemove(store, stored, indexedTerms(event)),
    ...counts,
  });
}

/**
 * The terms that an event was indexed under. None if its data are no JSON: its entries then expire with their lists.
 */
function indexedTerms(event: StoredEvent['event']): SearchTerm[] {
  try {
    return termsOf(sessionFacts(event));
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
