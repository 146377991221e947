/** Adds jobs as BullMQ does. Posthorn itself adds them in the scripts that make or release deliveries. */
import { type DeliveryJob, RETRY_PRIORITY } from '@posthorn/core';
import { jobIdOf } from '@posthorn/testing';
import type { JobsOptions } from 'bullmq';
import type { JobQueues } from './job-queues.ts';

type JobToAdd = DeliveryJob & {
  /** Its delivery has had an attempt: the job waits behind first attempts. */
  isRetry?: boolean;
  /** Time until the job is due. */
  delayMs?: number;
};

/** Adds jobs to a partition's queue, all in one pipeline. A job that exists already is left unchanged. */
export async function addJobs(
  { all }: Pick<JobQueues, 'all'>,
  partition: number,
  jobs: readonly JobToAdd[],
): Promise<void> {
  await all[partition]!.addBulk(jobs.map(toBullJob));
}

function toBullJob(job: JobToAdd) {
  const opts: JobsOptions = { jobId: jobIdOf(job) };
  if (job.delayMs) opts.delay = job.delayMs;
  if (job.isRetry) opts.priority = RETRY_PRIORITY;
  return { name: job.subscriptionId, data: { event_id: job.event }, opts };
}
