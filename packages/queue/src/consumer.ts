/** Takes jobs from one partition's queue and translates their outcomes for BullMQ. */
import { type DeliveryJob, StorageUnavailable } from '@posthorn/core';
import { ConnectionClosedError, DelayedError, ErrorCode, type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { type BullData, fromBullJob, QUEUE_NAME, RETRY_PRIORITY } from './job.ts';

/** The outcome of a job. */
export type JobOutcome =
  /** The delivery no longer needs the job: it is removed. */
  | { kind: 'done' }
  /** The delivery failed for good: the job is kept among the failed ones for operators to see. */
  | { kind: 'failed'; reason: string }
  /** The attempt failed: the next one is due after exactly this delay. */
  | { kind: 'retry'; delayMs: number; reason: string }
  /** No attempt counts: the job comes back at this time, in milliseconds since 1970. */
  | { kind: 'snoozed'; untilMs: number };

export interface ConsumerOptions {
  redis: Redis | Cluster;
  /** The partition's prefix. */
  partitionPrefix: string;
  /** Jobs in flight at once. */
  concurrency: number;
  handle: (job: DeliveryJob) => Promise<JobOutcome>;
  /** Called when the grace of a stop is nearly over: jobs in flight must come to an outcome at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
  timings?: Partial<ConsumerTimings>;
}

/** How soon the queue takes over the jobs of dead or stopping workers. Tests on whole processes use shorter times. */
export interface ConsumerTimings {
  /** How long a job stays locked to its worker. Longer than any attempt; renewed at half of it. The jobs of a dead worker wait for its end. */
  lockMs: number;
  /** How often the queue looks for jobs of dead workers. */
  stalledCheckMs: number;
  /** The last part of the grace of a stop, in which jobs that gave up are put back. */
  putBackMs: number;
}

const TIMINGS: ConsumerTimings = { lockMs: 30_000, stalledCheckMs: 15_000, putBackMs: 1_000 };

/** No limit on how often a job is taken over from dead workers: the record of its delivery counts the attempts. */
const MAX_STALLED = 1_000_000;
/** Failed jobs kept for Bull Board; the record of a delivery lives longer than its job. */
const MAX_FAILED_KEPT = 1_000;
/** A job whose handler throws, because of a bug or of Redis, comes back after this. */
const AFTER_ERROR_MS = 15_000;

export type Consumer = ReturnType<typeof createConsumer>;
export function createConsumer(options: ConsumerOptions) {
  const timings = { ...TIMINGS, ...options.timings };
  const worker: Worker<BullData> = new Worker(
    QUEUE_NAME,
    (job: Job<BullData>, token?: string) => run(worker, options, job, token),
    {
      connection: options.redis,
      prefix: options.partitionPrefix,
      autorun: false,
      concurrency: options.concurrency,
      lockDuration: timings.lockMs,
      stalledInterval: timings.stalledCheckMs,
      maxStalledCount: MAX_STALLED,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: MAX_FAILED_KEPT },
      runRetryDelay: 1_000,
      skipVersionCheck: true,
      settings: {
        backoffStrategy: (_attempts, _type, error) => (error instanceof RetryDue ? error.delayMs : AFTER_ERROR_MS),
      },
    },
  );
  const onError = (error: unknown) => options.onError(typedError(error));
  worker.on('error', onError);
  return {
    async start(): Promise<void> {
      await worker.waitUntilReady().catch((error: unknown) => Promise.reject(typedError(error)));
      worker.run().catch(onError);
    },
    /** Takes no more jobs until `resume`. Jobs in flight go on, and one that is being fetched may still start. */
    pause: () => worker.pause(true),
    async resume(): Promise<void> {
      // A worker that is closed would start its timers again.
      if (!worker.closing) await worker.resume();
    },
    /** Takes no new jobs and waits for those in flight, at most `graceMs`; shortly before, makes them give up. Resolves to whether all ended. */
    async stop(graceMs: number): Promise<boolean> {
      const closed = worker.close().then(() => true);
      const giveUp = setTimeout(options.giveUp, Math.max(0, graceMs - timings.putBackMs));
      const timeUp = Promise.withResolvers<boolean>();
      const end = setTimeout(() => timeUp.resolve(false), graceMs);
      const allEnded = await Promise.race([closed, timeUp.promise]);
      clearTimeout(giveUp);
      clearTimeout(end);
      return allEnded;
    },
  };
}

/** BullMQ has an error of its own for a connection that was closed. All others of Redis are typed by the connection. */
function typedError(error: unknown): Error {
  if (error instanceof ConnectionClosedError) return new StorageUnavailable(error.message, error);
  return error instanceof Error ? error : new Error(String(error));
}

const JOB_GONE = new Set<unknown>([ErrorCode.JobNotExist, ErrorCode.JobLockNotExist, ErrorCode.JobLockMismatch]);

/**
 * Whether an error only means that a job is over or that another worker has it: its outcome was sent twice because a connection broke
 * before the response, or its lock expired. Nothing is lost, since the record of the delivery has the outcome.
 */
export function isJobGone(error: Error): boolean {
  return JOB_GONE.has((error as { code?: unknown }).code) || error.message.startsWith('could not renew lock');
}

/** Makes BullMQ retry a job; the backoff strategy returns `delayMs`. */
class RetryDue extends Error {
  readonly delayMs: number;
  constructor(delayMs: number, reason: string) {
    super(reason);
    this.delayMs = delayMs;
  }
}

/**
 * Sets the priority that an active job has when it comes back. Only if the job still exists, or a hash without a job would be left.
 * BullMQ's own `changePriority` would search all waiting jobs for it.
 */
const SET_PRIORITY = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'priority', ARGV[1]) end`;

async function run(
  worker: Worker<BullData>,
  options: ConsumerOptions,
  job: Job<BullData>,
  token: string | undefined,
): Promise<void> {
  // Not stored with each job (see job.ts): unlimited tries, the delay from our backoff strategy, no stack traces.
  Object.assign(job.opts, { attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'schedule' }, stackTraceLimit: 0 });
  let outcome: JobOutcome;
  try {
    outcome = await options.handle(fromBullJob(job));
  } catch (error) {
    options.onError(typedError(error));
    outcome = { kind: 'retry', delayMs: AFTER_ERROR_MS, reason: 'internal error' };
  }
  switch (outcome.kind) {
    case 'done':
      return;
    case 'failed':
      throw new UnrecoverableError(outcome.reason);
    case 'retry':
      await options.redis.eval(SET_PRIORITY, 1, worker.toKey(job.id ?? ''), RETRY_PRIORITY);
      throw new RetryDue(outcome.delayMs, outcome.reason);
    case 'snoozed':
      await job.moveToDelayed(outcome.untilMs, token);
      throw new DelayedError();
  }
}
