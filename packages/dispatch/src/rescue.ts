/** Rescues deliveries whose job is gone although they wait for it. */
import { expectedJobs, rescueJobs } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Checks up to `limit` deliveries with a status that were made before `beforeMs`, oldest first, from `offset` on, and
 * adds a new job for each that has none. A younger delivery may still get its job from a process of 0.1.0. The new job
 * has a new generation, so that an old one that turns up does nothing. Returns how many it rescued and the next `offset`
 * (undefined at the end).
 */
export async function rescue(
  { store, jobQueues }: StoreAndQueue,
  partition: number,
  status: 'pending' | 'waiting_for_retry',
  range: { beforeMs: number; offset: number; limit: number },
  nowMs: number,
): Promise<{ rescued: number; next: number | undefined }> {
  const { jobs, next } = await expectedJobs(store, partition, status, range);
  const rescued = await rescueJobs(store, partition, await jobQueues.missing(partition, jobs), nowMs);
  return { rescued, next };
}
