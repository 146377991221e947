/** For tests: takes jobs of one partition, as a worker does. */
import type { NextJob, Take } from '@posthorn/core';
import { takeJobs } from './deliveries/jobs.ts';
import type { FoundJob } from './scripts.ts';
import type { Store } from './store.ts';

export async function takeFrom(
  store: Store,
  take: Take,
  lock: Parameters<typeof takeJobs>[3],
): Promise<NextJob<FoundJob>[]> {
  const [taken] = await takeJobs(store, [take], [], lock);
  if (!Array.isArray(taken)) throw taken;
  return taken;
}
