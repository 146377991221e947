/** Ends what is left of a deleted subscription. */
import { partitionOf } from '@posthorn/core';
import { clearDeletedSubscription, deletionOf, endDeliveries, type Store, unfinishedDeliveries } from '@posthorn/store';

/**
 * Ends the unfinished deliveries of a deleted subscription, and clears away what is left of it. May be repeated, and
 * done by several processes at once.
 */
export async function closeSubscription(store: Store, subscriptionId: string, nowMs: number): Promise<void> {
  const steps = closeInSteps(store, subscriptionId, () => nowMs);
  while (!(await steps.next()).done);
}

/**
 * Does so in steps, each of some hundred index entries, and yields how many deliveries a step found. Time may pass
 * between two steps. Deliveries that a restart of Redis makes it miss end all the same: those that are held keep the
 * subscription in the list of those to be closed, and a worker ends any other one when it has its job.
 */
export async function* closeInSteps(
  store: Store,
  subscriptionId: string,
  now: () => number,
): AsyncGenerator<number, void> {
  const partition = partitionOf(subscriptionId, store.partitions);
  const deletion = await deletionOf(store, subscriptionId);
  for await (const deliveries of unfinishedDeliveries(store, subscriptionId)) {
    const reason = 'subscription_deleted';
    await endDeliveries(store, { partition, deliveries, reason, nowMs: now() });
    yield deliveries.length;
  }
  await clearDeletedSubscription(store, subscriptionId, deletion);
}
