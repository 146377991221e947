/** The service that takes jobs from every partition's queue and attempts their deliveries. */
import { type ConsumerTimings, createConsumer } from '@posthorn/queue';
import type { Service } from '@posthorn/runtime';
import type { connectRedis } from '@posthorn/store';
import type { AttemptContext } from './attempt-delivery.ts';
import { handleJob } from './handle-job.ts';

export interface AttemptsOptions {
  context: AttemptContext;
  redis: ReturnType<typeof connectRedis>;
  /** The beginnings of the partitions' keys. */
  bases: readonly string[];
  /** Jobs in flight in all partitions together. */
  concurrency: number;
  timings: Partial<ConsumerTimings>;
  /** Makes the attempts in flight end at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
}

export interface Attempts extends Service {
  /** Stops or resumes taking jobs. */
  setPaused(isPaused: boolean): Promise<void>;
}

export function createAttempts(options: AttemptsOptions): Attempts {
  const { context, redis, bases, concurrency, timings, giveUp, onError } = options;
  const consumers = bases.map((base) =>
    createConsumer({
      redis,
      base,
      concurrency: Math.ceil(concurrency / bases.length),
      handle: (job) => handleJob(context, job),
      giveUp,
      timings,
      onError,
    }),
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
      if (ended.includes(false)) context.logger.error('attempts in flight were left to another worker');
    },
  };
}
