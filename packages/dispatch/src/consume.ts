/**
 * The consumer of deliveries' jobs: the loop of packages/queue with the scripts of packages/store, which end a job and
 * take the next in one step.
 */
import { DELIVERY_ID_PREFIX_LENGTH, type DeliveryJob } from '@posthorn/core';
import { type Claim, Consumer, type ConsumerOptions, type EndJob, type JobOutcome } from '@posthorn/queue';
import {
  deliveryOfJob,
  type FoundJob,
  finishJob,
  type JobToEnd,
  lookForJobs,
  onDisconnect,
  partitionsWithWorkers,
  putBackLost,
  type Store,
  takeJobs,
  type WorkerView,
  watchWorkers,
} from '@posthorn/store';

/** Ends the job of a delivery by a script of packages/store. */
export type EndDeliveryJob = EndJob<FoundJob, JobToEnd>;

interface DeliveryConsumerOptions
  extends Pick<
    ConsumerOptions<FoundJob>,
    'redis' | 'partitionPrefixes' | 'concurrency' | 'giveUp' | 'onError' | 'onTakenOver' | 'onPutBack' | 'timings'
  > {
  store: Store;
  worker: WorkerView;
  /**
   * Handles the job of a delivery. `found`: what was read when it was taken. `end` ends the job by a script that
   * records a success too. No attempt may start unless `claim` is sure.
   */
  handle: (job: DeliveryJob, found: FoundJob, end: EndDeliveryJob, claim: Claim) => Promise<JobOutcome>;
}

/** What a consumer needs to know of deliveries' jobs, with the scripts of packages/store that take and end them. */
export function jobScripts(store: Store, worker?: WorkerView) {
  return {
    addressOf: ({ id }) => id.slice(0, DELIVERY_ID_PREFIX_LENGTH),
    look: (partitions) => lookForJobs(store, partitions),
    take: (takes, marked, lock) => takeJobs(store, takes, marked, { ...lock, worker }),
    finish: (partition, lock) => finishJob(store, partition, { ...lock, worker }),
    watch: (partition, watch) => watchWorkers(store, partition, watch),
    findWatched: () => partitionsWithWorkers(store),
    onDisconnect: (listener) => onDisconnect(store.redis, listener),
    putBackLost: (partition, tokens, knownIds) => putBackLost(store, partition, tokens, knownIds),
  } satisfies Partial<ConsumerOptions<FoundJob>>;
}

/**
 * Takes jobs and has their deliveries handled. A job whose delivery is gone ends at once; one whose delivery can't be
 * read comes back later.
 */
export function createDeliveryConsumer(options: DeliveryConsumerOptions): Consumer<FoundJob> {
  const { store, worker, handle, ...common } = options;
  return new Consumer<FoundJob>({
    ...common,
    ...jobScripts(store, worker),
    handle(found, end, claim) {
      if (found.error) return Promise.reject(found.error);
      const job = deliveryOfJob(found);
      return job
        ? handle(job, found, (move) => end((lock, room) => move({ ...lock, worker }, room)), claim)
        : Promise.resolve({ kind: 'done' });
    },
  });
}
