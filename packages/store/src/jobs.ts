/** Takes jobs out of BullMQ's queue and ends them, in the same step as what else Redis has to do for their deliveries. */
import type { DeliveryJob, EventRef } from '@posthorn/core';
import { partitionPrefix } from './keys.ts';
import { type FoundJob, type NextJob, runScript, type ScriptResult } from './scripts.ts';
import type { Store } from './store.ts';

/** How a job that is taken next is locked. */
export interface NextLock {
  /** Identifies the lock; undefined: no job is taken. */
  nextToken: string | undefined;
  lockMs: number;
  nowMs: number;
  /** The event that the worker has in memory. */
  knownEvent: EventRef | undefined;
}

/** A job that ends, with the token of its lock. */
export interface EndedJob extends NextLock {
  jobId: string;
  token: string;
}

/** Takes and locks the next jobs of a partition, at most `limit`. If fewer wait, the last one in the result says when the next is due. */
export async function takeJobs(
  store: Store,
  partition: number,
  lock: NextLock & { nextToken: string; limit: number },
): Promise<NextJob[]> {
  const { spansPartitions } = store;
  const values = { ...lock, token: lock.nextToken, spansPartitions };
  return await runScript(store, 'takeJobs', partitionPrefix(store, partition), values);
}

/** When the next job of each of these partitions is due, in milliseconds since 1970 (0: one waits); undefined where there is none. Takes nothing. */
export async function lookForJobs(store: Store, partitions: readonly number[]): Promise<(number | undefined)[]> {
  const homes = partitions.map((partition) => ({ home: partitionPrefix(store, partition) }));
  const look = (some: typeof homes) => runScript(store, 'lookForJobs', some[0]?.home ?? '', { partitions: some });
  if (store.spansPartitions) return await look(homes);
  return (await Promise.all(homes.map((one) => look([one])))).flat();
}

/**
 * Ends the job of a delivery that needs it no longer, and takes the next one of its partition, in one step. `code`: 0, or BullMQ's error code
 * where the job could not be ended.
 */
export async function finishJob(store: Store, partition: number, lock: EndedJob): Promise<ScriptResult<'finishJob'>> {
  return await runScript(store, 'finishJob', partitionPrefix(store, partition), {
    ...lock,
    spansPartitions: store.spansPartitions,
  });
}

/**
 * Renews the lease of a worker on its jobs in a partition, if there is an `owner`, and takes over the jobs of dead workers: those that have not renewed
 * their lease in `maxChecks` checks, of which there is at most one in `checkMs` (0: none now). Puts back at most `limit` jobs. `state`: of the
 * caller's lease; `new`: it had none, and jobs that it took before are lost; `dead`: it has none any more under this owner.
 */
export async function watchWorkers(
  store: Store,
  partition: number,
  watch: { owner: string | undefined; checkMs: number; maxChecks: number; limit: number },
): Promise<ScriptResult<'watchWorkers'>> {
  return await runScript(store, 'watchWorkers', partitionPrefix(store, partition), watch);
}

/** The delivery of a job that was taken; undefined if it is gone. */
export function deliveryOfJob({ id, delivery }: FoundJob): DeliveryJob | undefined {
  if (!delivery) return undefined;
  const [deliveryId = '', generation = '0'] = id.split('.');
  const [event, subscriptionId] = [delivery[3] as EventRef, delivery[8] ?? ''];
  return { deliveryId, generation: Number(generation), subscriptionId, event };
}
