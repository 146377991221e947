/** The service that takes jobs from every partition's queue and attempts their deliveries. */
import { partitionOf } from '@posthorn/core';
import { createDeliveryConsumer } from '@posthorn/dispatch';
import type { ConsumerTimings } from '@posthorn/queue';
import type { Service } from '@posthorn/runtime';
import { EarlierAttempts } from '../slots/earlier-attempts.ts';
import type { AttemptContext } from './attempt-delivery.ts';
import { handleJob, inBackground, releaseParked } from './handle-job.ts';

interface AttemptsOptions
  extends Pick<Parameters<typeof createDeliveryConsumer>[0], 'redis' | 'partitionPrefixes' | 'concurrency' | 'giveUp'> {
  context: AttemptContext;
  timings: Partial<ConsumerTimings>;
}

export interface Attempts extends Service {
  /** Stops or resumes taking jobs. */
  setPaused(isPaused: boolean): void;
}

export function createAttempts({ context, ...common }: AttemptsOptions): Attempts {
  const { store, eventBodies, slots, outages, logger, onError } = context;
  const earlier = new EarlierAttempts(context);
  const consumer = createDeliveryConsumer({
    ...common,
    store,
    onError,
    worker: {
      knownEvent: eventBodies.latest,
      room: () => ({ ...slots.room(), dueBeforeMs: outages.endedAtMs() }),
      parked(subscriptionIds) {
        for (const id of subscriptionIds) {
          if (slots.isFullButFast(id)) consumer.foundCrowded(partitionOf(id, store.partitions));
        }
        inBackground(context, releaseParked(context, subscriptionIds));
      },
    },
    onTakenOver: (jobs) => logger.warn({ jobs }, 'jobs.taken_over'),
    onPutBack: (jobs) => logger.warn({ jobs }, 'jobs.reply_lost'),
    handle(job, found, end, claim) {
      const handle = () => handleJob(context, job, { found, end, claim });
      return earlier.learn(job.subscriptionId)?.then(handle) ?? handle();
    },
  });
  return {
    name: 'attempts',
    start: () => consumer.start(),
    setPaused(isPaused) {
      if (isPaused) consumer.pause();
      else consumer.resume();
    },
    async stop(graceMs) {
      if (!(await consumer.stop(graceMs)))
        throw new Error(
          'Attempts in flight did not end, or Redis could not record them. Other workers make them again.',
        );
    },
  };
}
