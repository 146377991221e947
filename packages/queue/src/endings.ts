/**
 * Ends jobs that can't just be removed: BullMQ's own scripts put them back or keep them as failed. Also runs BullMQ's
 * check for the jobs of dead workers.
 */
import { QUEUE_NAME, queueKey, RETRY_PRIORITY, StorageUnavailable } from '@posthorn/core';
import { ConnectionClosedError, createRedisBackend, ErrorCode, type MinimalJob, type WorkerOptions } from 'bullmq';
import { LimitedQueues, type LimitedQueuesOptions } from './limited-queues.ts';

/** The outcome of a job. */
export type JobOutcome =
  /** The delivery no longer needs the job: it is removed. */
  | { kind: 'done' }
  /** The delivery failed for good: the job is kept among the failed ones for operators to see. */
  | { kind: 'failed'; reason: string }
  /** The attempt failed at `endedAtMs`, in milliseconds since 1970: the next one is due after exactly this delay. */
  | { kind: 'retry'; endedAtMs: number; delayMs: number; reason: string }
  /** No attempt counts: the job comes back at this time. */
  | { kind: 'snoozed'; untilMs: number };

/** An outcome whose job stays in Redis. */
type KeptOutcome = Exclude<JobOutcome, { kind: 'done' }>;

/** Jobs may be taken over from dead workers any number of times: the record of the delivery counts the attempts. */
const MAX_STALLED = 1_000_000;
/** Failed jobs kept for Bull Board; the record of a delivery lives longer than its job. */
const MAX_FAILED_KEPT = 1_000;

interface EndingsOptions extends LimitedQueuesOptions {
  lockMs: number;
  stalledCheckMs: number;
  onError: (error: unknown) => void;
}

export function createEndings(options: EndingsOptions) {
  const { redis, lockMs, stalledCheckMs, onError } = options;
  const backends = options.partitionPrefixes.map((prefix) => createBackend(prefix, options));
  const backendOf = (partition: number) => {
    const backend = backends[partition];
    if (!backend) throw new RangeError(`No partition ${partition}: there are ${backends.length}`);
    return backend;
  };
  const limitedQueues = new LimitedQueues(options);
  /**
   * For a job that has ended without taking another one. Never rejects: workers look by themselves every few seconds.
   */
  const wakeIfLimited = (partition: number) => limitedQueues.wake(partition).catch(onError);
  const checking = new Set<number>();
  return {
    /** Resolves once BullMQ has defined its scripts on the connection. Throws `StorageUnavailable`. */
    async ready(): Promise<void> {
      const all = Promise.all(backends.map((backend) => backend.waitUntilReady()));
      await all.catch((error: unknown) => Promise.reject(typedError(error)));
    },
    /** Ends a locked job with any outcome but `done`. If the lock is lost, throws an error that `isJobGone` matches. */
    async settle(partition: number, jobId: string, token: string, outcome: KeptOutcome): Promise<void> {
      try {
        await moveJob(backendOf(partition), jobId, token, outcome);
      } finally {
        // Also after an error: a first try whose reply was lost may have ended the job.
        await wakeIfLimited(partition);
      }
    },
    wakeIfLimited,
    extendLocks: (partition: number, jobIds: string[], tokens: string[]) =>
      backendOf(partition).extendLocks(jobIds, tokens, lockMs),
    /** Puts the jobs of dead workers back into the queue. One process at a time does so for a partition. */
    async checkStalled(): Promise<void> {
      const check = async (prefix: string, partition: number) => {
        if (checking.has(partition)) return;
        checking.add(partition);
        try {
          // BullMQ's key that spaces its checks. It would stay for as long as the clock of Redis was set back.
          await redis.pexpire(queueKey(prefix, 'stalled-check'), stalledCheckMs, 'LT');
          await backendOf(partition).moveStalledJobsToWait();
        } catch (error) {
          onError(error);
        } finally {
          checking.delete(partition);
        }
      };
      await Promise.all(options.partitionPrefixes.map(check));
    },
    async close(): Promise<void> {
      await Promise.all(backends.map((backend) => backend.close()));
    },
  };
}

type Backend = ReturnType<typeof createBackend>;

/** BullMQ's scripts for the queue of one partition. */
function createBackend(prefix: string, { redis, lockMs, stalledCheckMs, onError }: EndingsOptions) {
  const workerOptions: WorkerOptions = {
    connection: redis,
    prefix,
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: MAX_STALLED,
    skipVersionCheck: true,
  };
  const backend = createRedisBackend(QUEUE_NAME, workerOptions);
  backend.on('error', onError);
  return backend;
}

/** Ends a locked job: it comes back later, or stays among the failed ones. */
async function moveJob(backend: Backend, jobId: string, token: string, outcome: KeptOutcome): Promise<void> {
  const nowMs = Date.now();
  switch (outcome.kind) {
    case 'failed': {
      const fields = { failedReason: outcome.reason, stacktrace: '[]' };
      // BullMQ reads no more of a job than this.
      const job = { id: jobId, opts: { attempts: 1 } } as MinimalJob;
      await backend.moveToFailed(job, outcome.reason, { count: MAX_FAILED_KEPT }, token, false, fields);
      break;
    }
    case 'retry':
      // BullMQ's own `changePriority` would search all waiting jobs for it.
      await backend.moveToDelayed(jobId, outcome.endedAtMs, outcome.delayMs, token, {
        fieldsToUpdate: { failedReason: outcome.reason, priority: RETRY_PRIORITY },
      });
      break;
    case 'snoozed':
      await backend.moveToDelayed(jobId, nowMs, Math.max(0, outcome.untilMs - nowMs), token, { skipAttempt: true });
      break;
    default:
      outcome satisfies never;
  }
}

/** BullMQ throws its own error for a closed connection. The connection gives all other errors of Redis their types. */
export function typedError(error: unknown): Error {
  if (error instanceof ConnectionClosedError) return new StorageUnavailable(error.message, error);
  return error instanceof Error ? error : new Error(String(error));
}

/** The error of a job that a script of the store could not end; `code` is one of BullMQ's. */
export function errorOfCode(code: number, jobId: string): Error {
  return Object.assign(new Error(`Could not end job ${jobId}: ${ErrorCode[code] ?? code}`), { code });
}

/**
 * An error of one job, with the job's id; as it is if Redis is unavailable, or if it is one of BullMQ's, which names
 * the job.
 */
export function errorOfJob(error: unknown, jobId: string): Error {
  const typed = typedError(error);
  if (typed instanceof StorageUnavailable || 'code' in typed) return typed;
  return new Error(`Could not handle job ${jobId}: ${typed.message}`, { cause: typed });
}

const JOB_GONE = new Set<unknown>([ErrorCode.JobNotExist, ErrorCode.JobLockNotExist, ErrorCode.JobLockMismatch]);

/**
 * Whether an error only means that a job is over or that another worker has it: its outcome was sent twice because a
 * connection broke before the response, or its lock expired. Nothing is lost, since the record of the delivery has the
 * outcome.
 */
export function isJobGone(error: Error): boolean {
  return JOB_GONE.has((error as { code?: unknown }).code);
}
