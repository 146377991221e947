/** Ends what is left of a deleted subscription. */
import { partitionOf } from '@posthorn/core';
import { clearDeletedSubscription, deletionOf, endDeliveries, unfinishedDeliveries } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Ends the unfinished deliveries of a deleted subscription, removes their jobs, and clears away what is left of it. May
 * be repeated, and done by several processes at once.
 */
export async function closeSubscription(
  { store, jobQueues }: StoreAndQueue,
  subscriptionId: string,
  nowMs: number,
): Promise<void> {
  const partition = partitionOf(subscriptionId, store.partitions);
  const deletion = await deletionOf(store, subscriptionId);
  for await (const deliveries of unfinishedDeliveries(store, subscriptionId)) {
    await jobQueues.remove(partition, await endDeliveries(store, partition, deliveries, 'subscription_deleted', nowMs));
  }
  await clearDeletedSubscription(store, subscriptionId, deletion);
}
