/** Fan-out: makes the deliveries of a stored event and their first jobs, and finishes interrupted fan-outs. */
import { type EventRef, eachInTurn, PartitionUnavailable, StorageUnavailable, throwRejections } from '@posthorn/core';
import { allPartitions, type Store } from '../store.ts';
import type { StoredEvent } from './event-record.ts';
import { claimFanOut, confirmFanOut, interruptedFanOuts, loadEvent, renewFanOut } from './events.ts';
import { type CreatedDelivery, createDeliveries } from './store-event.ts';

/** What a function needs that makes the deliveries of an event. */
export interface FanOutContext {
  store: Store;
  clock: { now(): number };
  logger: { info: Log; warn: Log };
}

/**
 * A fan-out that goes on renews its time after this long, between two scripts. A script takes less than 5 s, or fails:
 * so while one goes on, its time is never so old that it counts as interrupted.
 */
const RENEW_AFTER_MS = 3_000;

type Log = (fields: Record<string, unknown>, event: string) => void;

/**
 * Makes the deliveries of a stored event with their first jobs, except those in `created`, which have theirs. Returns
 * the event's number of deliveries: at once if `created` are all, as for most events. Repeatable: the ids of a delivery
 * and of its job follow from the event and the subscription. Rejects with the error of Redis.
 */
export function makeDeliveries(
  context: FanOutContext,
  stored: StoredEvent,
  created: readonly CreatedDelivery[] = [],
): number | Promise<number> {
  return created.length < stored.subscriptionIds.length ? makeOthers(context, stored, created) : countMade(created);
}

async function makeOthers(
  { store, clock, logger }: FanOutContext,
  stored: StoredEvent,
  created: readonly CreatedDelivery[],
): Promise<number> {
  const warn = (text: string) => (err: unknown) => {
    // An outage is reported once, not for each event.
    if (!(err instanceof StorageUnavailable)) logger.warn({ err, event_id: stored.event.id }, text);
  };
  let renewedAtMs = stored.acceptedAtMs;
  const renew = () => {
    const nowMs = clock.now();
    if (nowMs - renewedAtMs < RENEW_AFTER_MS) return;
    renewedAtMs = nowMs;
    // Without it, another process may repeat what is being done, which changes nothing.
    renewFanOut(store, stored.ref, nowMs).catch(warn('fan_out.renew_failed'));
  };
  const done = new Set(created.map(({ subscriptionId }) => subscriptionId));
  const subscriptionIds = stored.subscriptionIds.filter((id) => !done.has(id));
  const others = await createDeliveries(store, { ...stored, subscriptionIds }, renew);
  // All is stored, so the caller does not wait. If this fails, the fan-out is repeated later and changes nothing.
  confirmFanOut(store, stored.ref).catch(warn('fan_out.confirm_failed'));
  return countMade(created) + countMade(others);
}

function countMade(deliveries: readonly CreatedDelivery[]): number {
  return deliveries.reduce((count, { state }) => count + Number(state !== 'none'), 0);
}

/** Events of one partition finished in one call. */
const MAX_EVENTS = 100;

/**
 * Finishes interrupted fan-outs, so that no publisher has to repeat its call. Returns how many. Several processes may
 * do so at the same time: each fan-out is finished by the one that claims it. In a Redis Cluster, a partition that is
 * unavailable does not stop the others. Once `stopping` is aborted, it begins no other fan-out.
 */
export async function finishFanOuts(context: FanOutContext, stopping?: AbortSignal): Promise<number> {
  const { store, clock, logger } = context;
  let events = 0;
  const finish = async (ref: EventRef) => {
    if (stopping?.aborted) return;
    const nowMs = clock.now();
    if (!(await claimFanOut(store, ref, nowMs))) return;
    events += 1;
    const stored = await loadEvent(store, ref);
    if (stored && stored.erasedAtMs === undefined) await makeAll(context, stored);
    else await confirmFanOut(store, ref);
  };
  const finishIn = async (partition: number) =>
    eachInTurn(await interruptedFanOuts(store, partition, clock.now(), MAX_EVENTS), finish);
  const partitions = allPartitions(store);
  // On one Redis one after the other. In a Cluster, each of the others may be on another one, and one may be away.
  const sequences = store.spansPartitions ? [partitions] : partitions.map((partition) => [partition]);
  const results = await Promise.allSettled(sequences.map((sequence) => eachInTurn(sequence, finishIn)));
  if (events > 0) logger.info({ events }, 'fan_out.resumed');
  throwRejections(results);
  return events;
}

/**
 * Makes the deliveries of an event. If some can't be made, that may be so in their partition alone, and the other
 * events of this one go on. If it is so in this one, the next event can't be claimed.
 */
async function makeAll(context: FanOutContext, stored: StoredEvent): Promise<void> {
  try {
    await makeDeliveries(context, stored);
  } catch (error) {
    throw error instanceof StorageUnavailable ? new PartitionUnavailable(error.message, error.cause) : error;
  }
}
