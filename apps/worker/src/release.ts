/** Brings deliveries back into the queue from the lanes in which they waited. */
import { partitionOf } from '@posthorn/core';
import type { Producer } from '@posthorn/queue';
import type { Clock } from '@posthorn/runtime';
import { type Lane, releaseDeliveries, type Store } from '@posthorn/store';

interface ReleaseContext {
  store: Store;
  producer: Producer;
  clock: Clock;
}

/**
 * Releases up to `limit` deliveries of an address from a lane, oldest first; answers how many. A crash between leaving the lane
 * and entering the queue leaves a delivery without a job, which the housekeeper's sweep finds.
 */
export async function release(
  { store, producer, clock }: ReleaseContext,
  lane: Lane,
  subscriptionId: string,
  limit: number,
): Promise<number> {
  const jobs = await releaseDeliveries(store, lane, subscriptionId, limit, clock.now());
  if (jobs.length > 0) await producer.add(partitionOf(subscriptionId, store.partitions), jobs);
  return jobs.length;
}
