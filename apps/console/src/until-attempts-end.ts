/** Waits for the end of the attempts that began before a change of address. */
import { partitionOf } from '@posthorn/core';
import type { ConsoleContext } from './context.ts';

const POLL_INTERVAL_MS = 25;
/** Added to the time limit of an attempt, so that its outcome can be recorded. */
const MARGIN_MS = 2_000;

/**
 * Resolves once all jobs of a subscription that were active at the time of the call have ended. Then every attempt that
 * read the previous address is over. It waits no longer than an attempt can take, because the worker of a job may have
 * died.
 */
export async function untilAttemptsEnd(
  { jobQueues, store, settings, logger }: ConsoleContext,
  subscriptionId: string,
): Promise<void> {
  const partition = partitionOf(subscriptionId, store.partitions);
  const endsAt = performance.now() + settings.ATTEMPT_TIMEOUT + MARGIN_MS;
  let left = await jobQueues.active(partition, subscriptionId);
  while (left.length > 0) {
    if (performance.now() > endsAt) {
      logger.warn({ subscription_id: subscriptionId, jobs: left.length }, 'subscription.drain_timed_out');
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    const active = new Set(await jobQueues.active(partition, subscriptionId));
    left = left.filter((id) => active.has(id));
  }
}
