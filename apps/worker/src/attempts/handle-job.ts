/** Handles a job: attempts its delivery if a slot is free, parks it otherwise. */
import type { DeliveryJob } from '@posthorn/core';
import type { JobOutcome } from '@posthorn/queue';
import { parkJob, releaseDeliveries } from '@posthorn/store';
import type { Capacity, Slot } from '../slots/slots.ts';
import { type AttemptContext, type Attempted, afterOutage, attemptDelivery } from './attempt-delivery.ts';
import type { TakenJob } from './attempt-in-flight.ts';

/** One try with the first slot, one after the host turned out to be full, and one after the IP did. */
const MAX_TRIES = 3;

/**
 * Attempts the delivery of a job if its address, host and IP have a free slot in this process. Otherwise the delivery
 * is parked outside the queue until an attempt that ends, or maintenance, releases it.
 */
export async function handleJob(context: AttemptContext, job: DeliveryJob, taken: TakenJob): Promise<JobOutcome> {
  const { slots } = context;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const acquired =
      tries === 0 ? slots.acquireSoon(job.subscriptionId, taken.found?.id) : slots.acquireAgain(job.subscriptionId);
    const slot = acquired instanceof Promise ? await acquired : acquired;
    if (!slot) break;
    // Resolving the name may have taken as long as an attempt, so the address may have changed since it was read.
    const outcome = await attempt(context, job, slot, tries === 0 ? taken : { ...taken, found: undefined });
    if (outcome !== 'no_slot') return outcome;
  }
  return await park(context, job, taken);
}

/** Attempts the delivery, and releases the slot. */
async function attempt(
  context: AttemptContext,
  job: DeliveryJob,
  slot: Slot,
  taken: TakenJob,
): Promise<Attempted['outcome']> {
  let attempted: Attempted | undefined;
  try {
    attempted = await attemptDelivery(context, job, slot, taken);
    return attempted.outcome;
  } finally {
    const { failed, parked = 0, followedBy } = attempted?.counted ?? {};
    const capacities = context.slots.release(slot, failed, parked, followedBy);
    // Only once the slot is free: a delivery released earlier might be parked again at once.
    if (capacities.length > 0) inBackground(context, releaseAll(context, capacities));
  }
}

async function park(context: AttemptContext, job: DeliveryJob, { end }: TakenJob): Promise<JobOutcome> {
  if (context.outages.current()) return afterOutage(context);
  const { lane } = await end((lock) => parkJob(context.store, job, lock));
  if (lane === 'parked') inBackground(context, releaseParked(context, [job.subscriptionId]));
  return { kind: 'done' };
}

/**
 * No job waits for the release of other deliveries, and no outcome depends on it. If a release fails, the next attempt
 * that ends, or maintenance, releases the deliveries.
 */
export function inBackground({ onError }: AttemptContext, release: Promise<void>): void {
  release.catch(onError);
}

/**
 * Releases a delivery of each of these addresses that has a free slot. Some of their deliveries were just parked, so an
 * attempt that ended earlier could not find those.
 */
export async function releaseParked(context: AttemptContext, subscriptionIds: readonly string[]): Promise<void> {
  const capacities = subscriptionIds.filter((id) => context.slots.noteParked(id));
  await releaseAll(
    context,
    capacities.map((subscriptionId) => ({ subscriptionId, deliveries: 1 })),
  );
}

async function releaseAll({ store, clock }: AttemptContext, capacities: readonly Capacity[]): Promise<void> {
  const nowMs = clock.now();
  await Promise.all(
    capacities.map((one) => releaseDeliveries(store, 'parked', one.subscriptionId, one.deliveries, nowMs)),
  );
}
