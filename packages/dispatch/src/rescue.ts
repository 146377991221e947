/** Rescues lost jobs: a process died after it wrote a delivery's record and before it added the job. */
import { expectedJobs, renewJobs } from '@posthorn/store';
import type { DispatchContext } from './context.ts';

/** One chunk of the deliveries of a partition that should have a job. */
export interface RescueChunk {
  partition: number;
  status: 'pending' | 'waiting_for_retry';
  /** Only deliveries made before this: a younger one may get its job at any moment. */
  beforeMs: number;
  /** Position in the partition's deliveries with this status, oldest first. */
  offset: number;
  /** Deliveries to check. */
  limit: number;
}

/**
 * Adds a new job for each delivery of a chunk that has none. The new job has a new generation, so that an old one that turns up
 * does nothing. Returns how many it rescued, and where the next chunk begins (undefined at the end).
 */
export async function rescue(
  { store, producer }: Pick<DispatchContext, 'store' | 'producer'>,
  { partition, status, beforeMs, offset, limit }: RescueChunk,
  nowMs: number,
): Promise<{ rescued: number; next: number | undefined }> {
  const { jobs, next } = await expectedJobs(store, partition, status, beforeMs, offset, limit);
  const renewed = await renewJobs(store, partition, await producer.missing(partition, jobs));
  const isRetry = status === 'waiting_for_retry';
  const added = renewed.map((job) => ({ ...job, isRetry, delayMs: Math.max(0, job.dueAtMs - nowMs) }));
  await producer.add(partition, added);
  return { rescued: renewed.length, next };
}
