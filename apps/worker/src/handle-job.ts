/** Handles a job: attempts its delivery if a slot is free, parks it otherwise. */
import type { DeliveryJob } from '@posthorn/core';
import { release } from '@posthorn/dispatch';
import type { JobOutcome } from '@posthorn/queue';
import { parkDelivery } from '@posthorn/store';
import {
  AFTER_OUTAGE_MS,
  type AttemptContext,
  type Attempted,
  attemptDelivery,
  type TakenJob,
} from './attempt-delivery.ts';
import type { Capacity } from './slots.ts';

/**
 * Attempts the delivery of a job if its address, host and IP have a free slot in this process. Otherwise the delivery is parked outside
 * the queue until an attempt that ends, or maintenance, releases it. `taken` comes from the consumer; without it everything is read again, and
 * the caller ends the job.
 */
export async function handleJob(context: AttemptContext, job: DeliveryJob, taken: TakenJob = {}): Promise<JobOutcome> {
  // The queue is paused; this job was fetched before.
  if (context.outages.current()) return { kind: 'snoozed', untilMs: context.clock.now() + AFTER_OUTAGE_MS };
  const slot = await context.slots.acquireSoon(job.subscriptionId);
  if (!slot) {
    const isCrowded = context.slots.isFullButFast(job.subscriptionId);
    const parked = await park(context, job);
    return isCrowded ? { kind: 'done', isCrowded } : parked;
  }
  let attempted: Attempted | undefined;
  let capacities: Capacity[] = [];
  try {
    attempted = await attemptDelivery(context, job, slot, taken);
  } finally {
    capacities = context.slots.release(slot, failedOf(attempted?.outcome), attempted?.parked ?? 0);
  }
  // After the slot is released: a delivery released earlier might be parked again at once.
  for (const { subscriptionId, deliveries } of capacities) {
    await release(context, 'parked', subscriptionId, deliveries, context.clock.now());
  }
  return attempted.outcome === 'no_slot' ? await park(context, job) : attempted.outcome;
}

/** Whether the attempt failed; undefined if none was made. */
function failedOf(outcome: Attempted['outcome'] | undefined): boolean | undefined {
  if (outcome === undefined || outcome === 'no_slot' || outcome.kind === 'snoozed') return undefined;
  return outcome.kind !== 'done';
}

async function park(context: AttemptContext, job: DeliveryJob): Promise<{ kind: 'done' }> {
  const lane = await parkDelivery(context.store, job, context.clock.now(), context.outages.endedAtMs());
  // A slot that was released before the delivery was in the lane could not find it there.
  if (lane === 'parked' && context.slots.canAcquire(job.subscriptionId)) {
    await release(context, 'parked', job.subscriptionId, 1, context.clock.now());
  }
  return { kind: 'done' };
}
