/** What a job meets first: a free place at its address, or else the parked lane. */
import type { DeliveryJob, JobOutcome } from '@posthorn/queue';
import { parkDelivery } from '@posthorn/store';
import { type AttemptContext, type Attempted, attemptDelivery } from './attempt-delivery.ts';
import { release } from './release.ts';

/** Whether an outcome says that an attempt failed; a job that is postponed had none. */
const FAILED = { done: false, failed: true, retry: true, postponed: undefined } as const;

/**
 * Attempts the delivery of a job if its address has a place free in this process. Otherwise the delivery is parked, outside
 * the queue and at no cost, until an attempt to the address ends or the housekeeper comes by.
 */
export async function handleJob(context: AttemptContext, job: DeliveryJob): Promise<JobOutcome> {
  if (!context.places.take(job.subscriptionId)) {
    const parked = await parkDelivery(context.store, job, context.clock.now(), context.releasePerSecond);
    return parked.kind === 'early' ? { kind: 'postponed', untilMs: parked.dueAtMs } : { kind: 'done' };
  }
  let attempted: Attempted | undefined;
  try {
    attempted = await attemptDelivery(context, job);
  } finally {
    context.places.free(job.subscriptionId, attempted && FAILED[attempted.outcome.kind]);
  }
  // Only now that the place is free: a delivery released before might be parked again at once.
  const room = Math.min(attempted.parked, context.places.room(job.subscriptionId));
  if (room > 0) await release(context, 'parked', job.subscriptionId, room);
  return attempted.outcome;
}
