/** Fan-out: makes the deliveries of a stored event and their first jobs, and finishes interrupted fan-outs. */
import { eachInTurn } from '@posthorn/core';
import type { StoredEvent } from './event-record.ts';
import { confirmFanOut, interruptedFanOuts, loadEvent } from './events.ts';
import type { Store } from './store.ts';
import { type CreatedDelivery, createDeliveries } from './store-event.ts';

/** What a function needs that makes the deliveries of an event. */
export interface FanOutContext {
  store: Store;
  logger: { info: Log; warn: Log };
}

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
  { store, logger }: FanOutContext,
  stored: StoredEvent,
  created: readonly CreatedDelivery[],
): Promise<number> {
  const done = new Set(created.map(({ subscriptionId }) => subscriptionId));
  const subscriptionIds = stored.subscriptionIds.filter((id) => !done.has(id));
  const others = await createDeliveries(store, { ...stored, subscriptionIds });
  // All is stored, so the caller does not wait. If this fails, the fan-out is repeated later and changes nothing.
  confirmFanOut(store, stored.ref).catch((err: unknown) =>
    logger.warn({ err, event_id: stored.event.id }, 'fan_out.confirm_failed'),
  );
  return countMade(created) + countMade(others);
}

function countMade(deliveries: readonly CreatedDelivery[]): number {
  return deliveries.reduce((count, { state }) => count + Number(state !== 'none'), 0);
}

/** A fan-out that is not confirmed for this long was interrupted. */
const INTERRUPTED_AFTER_MS = 15_000;
/** Events of one partition finished in one call. */
const MAX_EVENTS = 100;

/**
 * Finishes interrupted fan-outs, so that no publisher has to repeat its call. Returns how many. Several processes may
 * do so at the same time: the work is done twice then, without harm.
 */
export async function finishFanOuts(context: FanOutContext, nowMs: number): Promise<number> {
  const refs = await interruptedFanOuts(context.store, nowMs - INTERRUPTED_AFTER_MS, MAX_EVENTS);
  await eachInTurn(refs, async (ref) => {
    const stored = await loadEvent(context.store, ref);
    if (stored && stored.erasedAtMs === undefined) await makeDeliveries(context, stored);
    else await confirmFanOut(context.store, ref);
  });
  if (refs.length > 0) context.logger.info({ events: refs.length }, 'fan_out.resumed');
  return refs.length;
}
