/** Rescues lost jobs: a process died after it wrote a delivery's record and before it added the job. */
import { expectedJobs, rescueJobs } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Checks up to `limit` deliveries with a status that were made before `beforeMs`, oldest first, from `offset` on, and
 * adds a new job for each that has none. A younger delivery may get its job at any moment. The new job has a new
 * generation, so that an old one that turns up does nothing. Returns how many jobs it rescued and the next `offset`
 * (undefined at the end).
 */
export async function rescue(
  { store, producer }: StoreAndQueue,
  partition: number,
  status: 'pending' | 'waiting_for_retry',
  range: { beforeMs: number; offset: number; limit: number },
  nowMs: number,
): Promise<{ rescued: number; next: number | undefined }> {
  const { jobs, next } = await expectedJobs(store, partition, status, range);
  const rescued = await rescueJobs(store, partition, await producer.missing(partition, jobs));
  const isRetry = status === 'waiting_for_retry';
  const added = rescued.map((job) => ({ ...job, isRetry, delayMs: Math.max(0, job.dueAtMs - nowMs) }));
  await producer.add(partition, added);
  return { rescued: rescued.length, next };
}
