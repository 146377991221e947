/** What a job meets first: a free slot, or else the parked lane. */
import type { DeliveryJob } from '@posthorn/core';
import { release } from '@posthorn/dispatch';
import type { JobOutcome } from '@posthorn/queue';
import { parkDelivery } from '@posthorn/store';
import { AFTER_OUTAGE_MS, type AttemptContext, type Attempted, attemptDelivery, pacingOf } from './attempt-delivery.ts';
import type { Room } from './slots.ts';

/**
 * Attempts the delivery of a job if this process has a slot for its address, its host and its IP. Otherwise the delivery is parked, outside
 * the queue and at no cost, until an attempt that ends makes room for it or maintenance comes by.
 */
export async function handleJob(context: AttemptContext, job: DeliveryJob): Promise<JobOutcome> {
  // The queue is paused, and this job was on its way already.
  if (context.outages.current()) return { kind: 'postponed', untilMs: context.clock.now() + AFTER_OUTAGE_MS };
  const slot = await context.slots.acquireSoon(job.subscriptionId);
  if (!slot) return await park(context, job);
  let attempted: Attempted | undefined;
  let rooms: Room[] = [];
  try {
    attempted = await attemptDelivery(context, job, slot);
  } finally {
    rooms = context.slots.release(slot, failedOf(attempted?.outcome), attempted?.parked ?? 0);
  }
  // Only now that the slot is free: a delivery released before might be parked again at once.
  for (const { subscriptionId, deliveries } of rooms) {
    await release(context, 'parked', subscriptionId, deliveries, context.clock.now());
  }
  return attempted.outcome === 'no_slot' ? await park(context, job) : attempted.outcome;
}

/** Whether an outcome says that an attempt failed; undefined if there was none. */
function failedOf(outcome: Attempted['outcome'] | undefined): boolean | undefined {
  if (outcome === undefined || outcome === 'no_slot' || outcome.kind === 'postponed') return undefined;
  return outcome.kind !== 'done';
}

async function park(context: AttemptContext, job: DeliveryJob): Promise<JobOutcome> {
  const parked = await parkDelivery(context.store, job, context.clock.now(), pacingOf(context));
  // Slots that were released before the delivery was in the lane did not find it there.
  if (parked.kind === 'parked' && context.slots.hasRoom(job.subscriptionId)) {
    await release(context, 'parked', job.subscriptionId, 1, context.clock.now());
  }
  return parked.kind === 'early' ? { kind: 'postponed', untilMs: parked.dueAtMs } : { kind: 'done' };
}
