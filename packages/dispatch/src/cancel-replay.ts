/** Ends the deliveries of a cancelled bulk replay that have had no attempt. */
import { partitionOfId } from '@posthorn/core';
import { endUnattempted, unattempted } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Does one step of a cancellation; returns whether there is more to do at once. First removes the jobs, then ends the
 * deliveries: a crash in between leaves deliveries without a job, which the next step ends. What a worker has in flight
 * is attempted and not ended.
 */
export async function stepCancellation(
  { store, jobQueues }: StoreAndQueue,
  replayId: string,
  nowMs: number,
): Promise<boolean> {
  const part = await unattempted(store, replayId);
  if (!part) return false;
  const jobs = part.deliveries.map(({ id, generation }) => ({ deliveryId: id, generation }));
  const taken = await jobQueues.remove(partitionOfId(replayId, store.partitions), jobs);
  return await endUnattempted(store, replayId, part, taken, nowMs);
}
