/** The service that takes jobs from every partition's queue and attempts their deliveries. */
import { type ConsumerOptions, createConsumer } from '@posthorn/queue';
import type { Service } from '@posthorn/runtime';
import type { AttemptContext } from './attempt-delivery.ts';
import { handleJob } from './handle-job.ts';

export interface AttemptsOptions extends Omit<ConsumerOptions, 'partitionPrefix' | 'handle'> {
  context: AttemptContext;
  /** The prefixes of the partitions' keys. They share `concurrency`. */
  partitionPrefixes: readonly string[];
}

export interface Attempts extends Service {
  /** Stops or resumes taking jobs. */
  setPaused(isPaused: boolean): Promise<void>;
}

export function createAttempts(options: AttemptsOptions): Attempts {
  const { context, partitionPrefixes, ...common } = options;
  const concurrency = Math.ceil(options.concurrency / partitionPrefixes.length);
  const consumers = partitionPrefixes.map((partitionPrefix) =>
    createConsumer({ ...common, partitionPrefix, concurrency, handle: (job) => handleJob(context, job) }),
  );
  return {
    name: 'attempts',
    async start() {
      await Promise.all(consumers.map((consumer) => consumer.start()));
    },
    async setPaused(isPaused) {
      await Promise.all(consumers.map((consumer) => (isPaused ? consumer.pause() : consumer.resume())));
    },
    async stop(graceMs) {
      const ended = await Promise.all(consumers.map((consumer) => consumer.stop(graceMs)));
      if (ended.includes(false))
        context.logger.error({ partitions: ended.filter((allEnded) => !allEnded).length }, 'attempts.abandoned');
    },
  };
}
