/** The consumer of deliveries' jobs: the loop of packages/queue with the scripts of packages/store, which end a job and take the next in one step. */
import type { DeliveryJob, EventRef } from '@posthorn/core';
import {
  type Claim,
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  type EndJob,
  type JobOutcome,
} from '@posthorn/queue';
import {
  deliveryOfJob,
  type FoundJob,
  finishJob,
  lookForJobs,
  partitionsWithWorkers,
  type Store,
  takeJobs,
  watchWorkers,
} from '@posthorn/store';

export type EndDeliveryJob = EndJob<FoundJob>;

export interface DeliveryConsumerOptions
  extends Pick<
    ConsumerOptions<FoundJob>,
    'redis' | 'partitionPrefixes' | 'concurrency' | 'giveUp' | 'onError' | 'onTakenOver' | 'timings'
  > {
  store: Store;
  /** The event that this process has in memory, so that taking a job need not read it again. */
  knownEvent?: () => EventRef | undefined;
  /**
   * Handles the job of a delivery. `found`: what was read when it was taken. `end` ends the job by a script that records a success too. No attempt may
   * start unless `claim` is sure.
   */
  handle: (job: DeliveryJob, found: FoundJob, end: EndDeliveryJob, claim: Claim) => Promise<JobOutcome>;
}

/** The scripts of packages/store by which a consumer takes jobs, ends them, and watches other workers. */
export function jobScripts(store: Store, knownEvent?: () => EventRef | undefined) {
  return {
    look: (partitions) => lookForJobs(store, partitions),
    take: (partition, lock) => takeJobs(store, partition, { ...lock, knownEvent: knownEvent?.() }),
    finish: (partition, lock) => finishJob(store, partition, { ...lock, knownEvent: knownEvent?.() }),
    watch: (partition, watch) => watchWorkers(store, partition, watch),
    findWatched: () => partitionsWithWorkers(store),
  } satisfies Partial<ConsumerOptions<FoundJob>>;
}

/** Takes jobs and has their deliveries handled. A job whose delivery is gone ends at once. */
export function createDeliveryConsumer(options: DeliveryConsumerOptions): Consumer {
  const { store, knownEvent, handle, ...common } = options;
  return createConsumer<FoundJob>({
    ...common,
    ...jobScripts(store, knownEvent),
    async handle(found, end, claim) {
      const job = deliveryOfJob(found);
      return job ? await handle(job, found, end, claim) : { kind: 'done' };
    },
  });
}
