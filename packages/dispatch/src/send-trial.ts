/** The trial of a resume: one held delivery goes first (decision 35). */
import { partitionOf } from '@posthorn/core';
import { takeTrial } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Sends the trial of an address that is resuming, unless one is on its way. A crash before its job is added leaves a
 * delivery without a job, which is rescued. Two calls at once send one.
 */
export async function sendTrial(
  { store, producer }: StoreAndQueue,
  subscriptionId: string,
  nowMs: number,
): Promise<void> {
  const job = await takeTrial(store, subscriptionId, nowMs);
  if (job) await producer.add(partitionOf(subscriptionId, store.partitions), [job]);
}
