/** Erases one event that an erasure has found: first its deliveries, then its payload. */
import { type Erasure, type EventRef, isFinished, partitionOf, StorageUnavailable } from '@posthorn/core';
import type { StoredDelivery } from '../deliveries/delivery-record.ts';
import type { StoredEvent } from '../events/event-record.ts';
import { loadEvent } from '../events/events.ts';
import type { Store } from '../store.ts';
import {
  deliveriesToErase,
  eraseDeliveries,
  eraseEvent,
  forgetEvent,
  isFanningOut,
  lookLater,
} from './erasure-events.ts';

/** A worker has one of its jobs, or ingest makes more deliveries: looked at again after this. */
const SOON_MS = 1_000;
/** Its deliveries are to be sent first. */
const WHEN_SENT_MS = 10_000;
/** It can't be erased, for example because one of its deliveries can't be read. */
const AFTER_FAILURE_MS = 60_000;

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
  for await (const part of deliveriesToErase(store, stored)) {
    const byPartition = Map.groupBy(part, ({ subscriptionId }) => partitionOf(subscriptionId, store.partitions));
    for (const [partition, deliveries] of byPartition) {
      left += await eraseDeliveries(store, partition, deliveries, unsent === 'end', nowMs);
    }
  }
  if (left === 0) return 0;
  return unsent === 'deliver' ? WHEN_SENT_MS : SOON_MS;
}

async function hasUnsent(store: Store, stored: StoredEvent): Promise<boolean> {
  for await (const part of deliveriesToErase(store, stored)) if (part.some(isUnsent)) return true;
  return false;
}

const isUnsent = ({ status }: StoredDelivery) => !isFinished(status);
