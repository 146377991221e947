/** Waits until attempts that began before a change of address are over. */
import { partitionOf } from '@posthorn/core';
import type { ConsoleContext } from './context.ts';

const LOOK_EVERY_MS = 25;
/** Beyond the limit of an attempt, for its outcome to be recorded. */
const MARGIN_MS = 2_000;

/**
 * Resolves once none of the jobs that were in a worker's hands when it was called is any more: an attempt that read its address before
 * has ended, and one that reads it from now on sees the present one. A job of a worker that died is waited for no longer than an
 * attempt can last.
 */
export async function attemptsInFlight(
  { producer, store, settings, logger }: ConsoleContext,
  subscriptionId: string,
): Promise<void> {
  const partition = partitionOf(subscriptionId, store.partitions);
  const endsAt = performance.now() + settings.ATTEMPT_TIMEOUT + MARGIN_MS;
  let left = await producer.active(partition, subscriptionId);
  while (left.length > 0) {
    if (performance.now() > endsAt) {
      logger.warn({ subscription_id: subscriptionId, jobs: left.length }, 'subscription.drain_timed_out');
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    const active = new Set(await producer.active(partition, subscriptionId));
    left = left.filter((id) => active.has(id));
  }
}
