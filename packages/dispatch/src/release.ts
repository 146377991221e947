/** Moves deliveries from the lanes in which they wait back into the queue. */
import { partitionOf } from '@posthorn/core';
import { type Lane, releaseDeliveries } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/** Releases up to `limit` deliveries of an address from a lane, oldest first. Returns how many. */
export async function release(
  { store, producer }: StoreAndQueue,
  lane: Lane,
  subscriptionId: string,
  limit: number,
  nowMs: number,
): Promise<number> {
  const jobs = await releaseDeliveries(store, lane, subscriptionId, limit, nowMs);
  if (jobs.length > 0) await producer.add(partitionOf(subscriptionId, store.partitions), jobs);
  return jobs.length;
}
