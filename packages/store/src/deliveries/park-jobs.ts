/** Parks deliveries whose jobs found no free slot. */
import type { DeliveryJob } from '@posthorn/core';
import { prefixOfId } from '../keys.ts';
import { joinCalls } from '../redis/join-calls.ts';
import { runScript, type ScriptResult } from '../scripts.ts';
import type { Store } from '../store.ts';
import { type JobToEnd, ofWorker, tellParked } from './jobs.ts';

/** Jobs that one script ends, taking a next one for each: about a millisecond of Redis. */
const MAX_TOGETHER = 16;

interface ParkedJob extends Pick<DeliveryJob, 'generation' | 'subscriptionId'> {
  /** The prefix of the delivery's partition. */
  home: string;
  id: string;
  lock: JobToEnd;
}

type EndedParked = ScriptResult<'parkJobs'>['ended'][number];

const parkTogether = joinCalls<ParkedJob, EndedParked>({ max: MAX_TOGETHER, prefixOf: ({ home }) => home, run });

/**
 * Parks a delivery that has no free slot in this worker, ends its job and takes the next one, in one step: one script
 * for all of one turn of the event loop. Returns the lane, which is the overdue one for an overdue attempt, or
 * `superseded` if the delivery has another job or ended, or another worker has the job. `code`: 0, or BullMQ's error
 * code where the job could not be ended. May be repeated. Throws the error of Redis.
 */
export async function parkJob(store: Store, job: DeliveryJob, lock: JobToEnd): Promise<EndedParked> {
  const { deliveryId: id, generation, subscriptionId } = job;
  return await parkTogether(store, { home: prefixOfId(store, id), id, generation, subscriptionId, lock });
}

async function run(store: Store, jobs: readonly ParkedJob[], { home, lock }: ParkedJob): Promise<EndedParked[]> {
  const { ended, parkedAddresses } = await runScript(store, 'parkJobs', home, {
    ...ofWorker(store, lock),
    jobs: jobs.map((job) => ({ ...job, ...job.lock })),
  });
  tellParked(lock, parkedAddresses);
  return ended;
}
