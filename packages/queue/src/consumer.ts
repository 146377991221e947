/** Takes deliveries from one partition's queue and turns what became of them into BullMQ's terms: the only place that does. */
import { type DeliveryJob, StorageUnavailable } from '@posthorn/core';
import { ConnectionClosedError, DelayedError, ErrorCode, type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { type BullData, fromBullJob, QUEUE_NAME, RETRY_PRIORITY } from './job.ts';

/** What becomes of a job. */
export type JobOutcome =
  /** Its delivery needs it no more: it is removed. */
  | { kind: 'done' }
  /** Its delivery failed for good: it is kept among the failed ones for operators to see. */
  | { kind: 'failed'; reason: string }
  /** The next attempt is due after exactly this delay. */
  | { kind: 'retry'; delayMs: number; reason: string }
  /** It ran too early or not at all: it comes back at this time. */
  | { kind: 'postponed'; untilMs: number };

export interface ConsumerOptions {
  redis: Redis | Cluster;
  /** The partition's prefix. */
  partitionPrefix: string;
  /** Jobs in hand at once. */
  concurrency: number;
  handle: (job: DeliveryJob) => Promise<JobOutcome>;
  /** Called when the grace of a stop is nearly over: what is in hand must come to an outcome at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
  timings?: Partial<ConsumerTimings>;
}

/** How long the queue waits for what has died or is stopping; a test on a whole process has no time for these. */
export interface ConsumerTimings {
  /** A lock outlives any attempt, is renewed at its half, and is what a dead worker's jobs wait for. */
  lockMs: number;
  /** How often jobs of dead workers are looked for. */
  stalledCheckMs: number;
  /** Time left, of the grace of a stop, for jobs that gave up to be put back. */
  putBackMs: number;
}

const TIMINGS: ConsumerTimings = { lockMs: 30_000, stalledCheckMs: 15_000, putBackMs: 1_000 };

export interface Consumer {
  start(): Promise<void>;
  /** Takes no more jobs until `resume`; those in hand go on, and one that is being fetched may still come. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Takes no new jobs, waits for those in hand, and after `graceMs` makes them give up. Answers whether all ended. */
  stop(graceMs: number): Promise<boolean>;
}

/** A job may be picked up from dead workers as often as it takes: what a delivery is allowed is counted in its record. */
const MAX_STALLED = 1_000_000;
/** Failed jobs kept to be looked at in Bull Board; the record of a delivery lives longer than its job. */
const FAILED_KEPT = 1_000;
/** A job that met a bug or an unusable answer of Redis comes back after this. */
const AFTER_ERROR_MS = 15_000;

export function createConsumer(options: ConsumerOptions): Consumer {
  const timings = { ...TIMINGS, ...options.timings };
  const worker: Worker<BullData> = new Worker(
    QUEUE_NAME,
    (job: Job<BullData>, token?: string) => run(worker, options, job, token!),
    {
      connection: options.redis,
      prefix: options.partitionPrefix,
      autorun: false,
      concurrency: options.concurrency,
      lockDuration: timings.lockMs,
      stalledInterval: timings.stalledCheckMs,
      maxStalledCount: MAX_STALLED,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: FAILED_KEPT },
      runRetryDelay: 1_000,
      skipVersionCheck: true,
      settings: {
        backoffStrategy: (_made, _type, error) => (error instanceof RetryDue ? error.delayMs : AFTER_ERROR_MS),
      },
    },
  );
  const onError = (error: unknown) => options.onError(typedError(error));
  worker.on('error', onError);
  return {
    async start() {
      await worker.waitUntilReady().catch((error: unknown) => Promise.reject(typedError(error)));
      worker.run().catch(onError);
    },
    pause: () => worker.pause(true),
    async resume() {
      // A worker that is closed would start its timers again.
      if (!worker.closing) await worker.resume();
    },
    async stop(graceMs) {
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
 * Whether an error only says that a job is over or in other hands: BullMQ was told again what became of it, over a connection that broke
 * before its answer came, or its lock ran out. Its delivery's record knows what became of it.
 */
export function isJobGone(error: Error): boolean {
  return JOB_GONE.has((error as { code?: unknown }).code) || error.message.startsWith('could not renew lock');
}

/** Thrown for BullMQ to see; `delayMs` is what its backoff strategy answers. */
class RetryDue extends Error {
  readonly delayMs: number;
  constructor(delayMs: number, reason: string) {
    super(reason);
    this.delayMs = delayMs;
  }
}

/**
 * Gives a job a priority for when it comes back; only if it is still there, or a hash without a job would be left. BullMQ's own
 * `changePriority` searches all that waits for a job that is in a worker's hands.
 */
const SET_PRIORITY = `if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'priority', ARGV[1]) end`;

async function run(
  worker: Worker<BullData>,
  options: ConsumerOptions,
  job: Job<BullData>,
  token: string,
): Promise<void> {
  // Not stored with each job (see job.ts): as many tries as the schedule wants, the delay by our strategy, no stack traces.
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
      await options.redis.eval(SET_PRIORITY, 1, worker.toKey(job.id!), RETRY_PRIORITY);
      throw new RetryDue(outcome.delayMs, outcome.reason);
    case 'postponed':
      await job.moveToDelayed(outcome.untilMs, token);
      throw new DelayedError();
  }
}
