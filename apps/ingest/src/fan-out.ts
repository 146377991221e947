/** Makes an event's deliveries and their jobs, and finishes what a process that died left half done. */
import { partitionOf } from '@posthorn/core';
import type { DeliveryJob, Producer } from '@posthorn/queue';
import type { Logger } from '@posthorn/runtime';
import {
  type CreatedDelivery,
  confirmFanOut,
  createDeliveries,
  interruptedFanOuts,
  loadEvent,
  type Store,
  type StoredEvent,
} from '@posthorn/store';

export interface FanOutContext {
  store: Store;
  producer: Producer;
  logger: Logger;
}

/**
 * Makes the deliveries of a stored event, but those `made` already, and the first jobs of all; answers how many deliveries the
 * event has. May be repeated: each delivery's id and its job's id follow from the event and the subscription.
 */
export async function fanOut(
  { store, producer, logger }: FanOutContext,
  stored: StoredEvent,
  made: readonly CreatedDelivery[] = [],
): Promise<number> {
  const done = new Set(made.map(({ subscriptionId }) => subscriptionId));
  const left = stored.subscriptionIds.filter((id) => !done.has(id));
  const deliveries = [
    ...made,
    ...(left.length > 0 ? await createDeliveries(store, { ...stored, subscriptionIds: left }) : []),
  ];
  const jobs = new Map<number, DeliveryJob[]>();
  for (const { deliveryId, subscriptionId, state } of deliveries) {
    if (state !== 'pending') continue;
    const partition = partitionOf(subscriptionId, store.partitions);
    const job = { deliveryId, generation: 0, subscriptionId, event: stored.ref };
    const same = jobs.get(partition);
    if (same) same.push(job);
    else jobs.set(partition, [job]);
  }
  await Promise.all([...jobs].map(([partition, of]) => producer.add(partition, of)));
  // All is stored: the publisher need not wait for this. Where it fails, the sweep repeats the fan-out and changes nothing.
  if (left.length > 0)
    confirmFanOut(store, stored.ref).catch((err: unknown) => logger.warn({ err }, 'fan_out.confirm_failed'));
  return deliveries.filter(({ state }) => state !== 'none').length;
}

/** A fan-out not confirmed for this long was interrupted. */
const INTERRUPTED_AFTER_MS = 15_000;

/**
 * Finishes interrupted fan-outs, for a publisher that never repeats its call; answers how many. Every ingest process does so:
 * the work may be done twice.
 */
export async function finishInterruptedFanOuts(context: FanOutContext, nowMs: number): Promise<number> {
  const ids = await interruptedFanOuts(context.store, nowMs - INTERRUPTED_AFTER_MS, 100);
  for (const id of ids) {
    const stored = await loadEvent(context.store, id);
    if (stored) await fanOut(context, stored);
    else await confirmFanOut(context.store, id);
  }
  if (ids.length > 0) context.logger.info({ events: ids.length }, 'fan_out.finished_interrupted');
  return ids.length;
}
