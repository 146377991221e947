/**
 * Takes jobs from the partitions' queues, as many at once as a process may have in flight, and ends them. It replaces BullMQ's Worker and
 * works on BullMQ's keys: the end of one job and the taking of the next can be one step with what else is stored (docs/decisions, 45).
 */
import { StorageUnavailable } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';
import { createBurst } from './burst.ts';
import { createEndings, errorOfCode, type JobOutcome, typedError } from './endings.ts';
import { createJobLocks, type Lock } from './job-locks.ts';
import { type Claim, createLeases, type LeasesOptions } from './leases.ts';
import { createMarkers } from './markers.ts';
import { createPartitions, type Partition } from './partitions.ts';

export type { JobOutcome };

/** How the next job is locked, if one is to be taken. */
interface NextLock {
  nextToken: string | undefined;
  lockMs: number;
  nowMs: number;
}

/** A job that is locked to this process, and how the next one is locked. */
export interface LockedJob extends NextLock {
  jobId: string;
  token: string;
  /** Locks the job of a delivery that is parked. */
  laneToken: string | undefined;
  /** How many further jobs this process may take, besides one in place of this. */
  room: number;
}

/** A job that was taken, with what was read in the same step; or when the next one is due (undefined: when one is added). */
export type Taken<J> = { job: J } | { dueAtMs: number | undefined };

/** What was taken with the end of a job. */
export interface Ended<J> {
  /** 0, or BullMQ's error code where the job could not be ended. */
  code: number;
  /** What the queue gave; undefined if nothing was taken from it, and jobs may be left. */
  next: Taken<J> | undefined;
  /** Jobs of deliveries that were parked. */
  parkedJobs?: readonly J[];
}

/** Ends a job by a script of the caller, which also takes the next one. May be repeated after an error. */
type EndJob<J> = <E extends Ended<J>>(move: (lock: LockedJob) => Promise<E>) => Promise<E>;

export interface ConsumerOptions<J extends { id: string }>
  extends Pick<LeasesOptions, 'watch' | 'findWatched' | 'onTakenOver' | 'clocks'> {
  redis: Redis | Cluster;
  /** The prefixes of the partitions' keys, in order. */
  partitionPrefixes: readonly string[];
  /** Jobs in flight at once, over all partitions. */
  concurrency: number;
  /** Resolves to when the next job of each of these partitions is due (0: one waits; undefined: there is none). Takes nothing. */
  look: (partitions: readonly number[]) => Promise<(number | undefined)[]>;
  /** Takes at most `limit` jobs. If fewer wait, the last one in the result says when the next is due; otherwise jobs may be left. */
  take: (partition: number, lock: NextLock & { nextToken: string; limit: number }) => Promise<Taken<J>[]>;
  /** Ends a job that is over and takes the next one. */
  finish: (partition: number, lock: LockedJob) => Promise<Ended<J>>;
  /**
   * Handles a job. If it calls `end`, the job has ended and the outcome says nothing more; it must not end with another outcome then. What
   * must not happen twice starts only while `claim` is sure; otherwise the job is put back (`snoozed`), which fails if another worker has it.
   */
  handle: (job: J, end: EndJob<J>, claim: Claim) => Promise<JobOutcome>;
  /** Called when the grace of a stop is nearly over: jobs in flight must come to an outcome at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
  timings?: Partial<ConsumerTimings> | undefined;
}

/** How soon the queue takes over the jobs of dead or stopping workers. Tests on whole processes use shorter times. */
export interface ConsumerTimings {
  /** Interval at which a worker renews its lease on its jobs. After four of them without a renewal, others take the jobs over. */
  renewMs: number;
  /**
   * How long a job stays locked to its worker. Longer than any attempt; renewed at half of it. The jobs of a dead worker that has no lease, one of an earlier
   * version, wait for its end.
   */
  lockMs: number;
  /** How often the queue looks for jobs whose lock has expired. */
  stalledCheckMs: number;
  /** The last part of the grace of a stop, in which jobs that gave up are put back. */
  putBackMs: number;
  /** How long the end of a job waits at most while more jobs of a burst are being taken. */
  burstMs: number;
}

const TIMINGS: ConsumerTimings = {
  renewMs: 1_000,
  lockMs: 30_000,
  stalledCheckMs: 15_000,
  putBackMs: 1_000,
  burstMs: 10,
};
/** A job whose handler throws, because of a bug or of Redis, comes back after this. */
const AFTER_ERROR_MS = 15_000;
/** Pause before Redis is asked again after an error. */
const RETRY_MS = 1_000;
/** While all slots are taken, a partition that had no job is looked at this often: nobody waits for its marker then. */
const LOOK_AGAIN_MS = 250;

export type Consumer = ReturnType<typeof createConsumer>;
export function createConsumer<J extends { id: string }>(options: ConsumerOptions<J>) {
  const timings = { ...TIMINGS, ...options.timings };
  const onError = (error: unknown) => options.onError(typedError(error));
  const partitions = createPartitions(options.partitionPrefixes.length, options.concurrency);
  const endings = createEndings({ ...options, ...timings, onError });
  const locks = createJobLocks({ lockMs: timings.lockMs, extend: endings.extendLocks, onError });
  const burst = createBurst(timings.burstMs);
  const leases = createLeases({
    ...options,
    partitions: options.partitionPrefixes.length,
    hasJobs: (partition) => (partitions.all[partition]?.active ?? 0) > 0,
    renewMs: timings.renewMs,
    onError,
  });
  const markers = createMarkers({ ...options, partitions, onError, canTake, look, changed: fill });
  let state: 'new' | 'running' | 'stopping' = 'new';
  let isPaused = false;
  let stalledCheck: NodeJS.Timeout | undefined;
  let lookAgain: NodeJS.Timeout | undefined;
  const allEnded = Promise.withResolvers<void>();

  function canTake(): boolean {
    return state === 'running' && !isPaused && partitions.hasRoom();
  }

  /** Takes jobs until all slots are in use or no partition has any; then waits for markers. */
  function fill(): void {
    if (state === 'stopping' && partitions.inUse() === 0) allEnded.resolve();
    if (state !== 'running' || isPaused) return;
    for (let next = partitions.next(); next; next = partitions.next()) void take(next);
    if (partitions.hasRoom()) markers.wait();
    else lookAgain ??= setTimeout(() => void lookAtEmpty(), LOOK_AGAIN_MS);
  }

  /** Looks whether empty partitions have jobs. Taking from each would cost more, and a lease on its jobs. */
  async function look(empty: readonly Partition[]): Promise<void> {
    const dueAtMs = await options.look(empty.map(({ index }) => index));
    for (const [i, partition] of empty.entries()) partitions.looked(partition, dueAtMs[i]);
  }

  async function lookAtEmpty(): Promise<void> {
    const empty = partitions.hasRoom() ? [] : partitions.all.filter((partition) => partition.state === 'empty');
    if (empty.length > 0) await look(empty).catch(onError);
    lookAgain = undefined;
    fill();
  }

  async function take(partition: Partition): Promise<void> {
    const limit = partitions.reserve(partition);
    const isBurst = partition.state === 'busy' && limit > 1;
    if (isBurst) burst.begin();
    let taken: Taken<J>[];
    let token: string;
    try {
      if (!leases.isSure(partition.index)) await leases.ensure(partition.index);
      token = leases.newToken(partition.index);
      const lock = { nextToken: token, lockMs: timings.lockMs, nowMs: Date.now(), limit };
      taken = await options.take(partition.index, lock);
    } catch (error) {
      if (state !== 'stopping') onError(error);
      // The partition stays as it is while the pause lasts: nobody else takes from it meanwhile.
      setTimeout(
        () => {
          partition.taking = 0;
          fill();
        },
        state === 'stopping' ? 0 : RETRY_MS,
      );
      return;
    } finally {
      if (isBurst) void burst.taken();
    }
    partition.taking = 0;
    if (taken.length === limit) partitions.tookAll(partition);
    const claim = leases.claim(partition.index, token);
    const jobs = taken.flatMap((one) => found(partition, one) ?? []);
    partition.active += jobs.length;
    // The next ones are asked for first: Redis takes them while these begin.
    fill();
    for (const job of jobs) begin(partition, job, token, claim);
  }

  /** Notes whether the queue of a partition had a job. Returns the job. */
  function found(partition: Partition, taken: Taken<J>): J | undefined {
    if ('dueAtMs' in taken) {
      partitions.foundEmpty(partition, taken.dueAtMs);
      return undefined;
    }
    partition.state = 'busy';
    return taken.job;
  }

  function begin(partition: Partition, job: J, token: string, claim: Claim): void {
    void run(partition, job, locks.add(partition.index, job.id, token), claim);
  }

  /** Claims the jobs that were taken at the end of another one. Returns what begins them: by then, another worker may have them. */
  function claimNext(partition: Partition, { next, parkedJobs = [] }: Ended<J>, token: string | undefined): () => void {
    const job = next && found(partition, next);
    if (token === undefined) return () => undefined;
    const claim = leases.claim(partition.index, token);
    return () => {
      const jobs = job ? [job, ...parkedJobs] : parkedJobs;
      partition.active += jobs.length;
      for (const one of jobs) begin(partition, one, token, claim);
    };
  }

  async function run(partition: Partition, job: J, held: Lock, claim: Claim): Promise<void> {
    const { token } = held;
    // Set once the job has ended.
    let beginNext = undefined as (() => void) | undefined;
    const end: EndJob<J> = async (move) => {
      await burst.over();
      const mayTake = state === 'running' && !isPaused && leases.isSure(partition.index);
      const room = partitions.room();
      const takesNext = mayTake && partitions.mayTakeNext(partition);
      const nextToken = takesNext || (mayTake && room > 0) ? leases.newToken(partition.index) : undefined;
      const lock = {
        jobId: job.id,
        token,
        nextToken: takesNext ? nextToken : undefined,
        laneToken: nextToken,
        room,
        lockMs: timings.lockMs,
        nowMs: Date.now(),
      };
      const result = await move(lock);
      beginNext = claimNext(partition, result, nextToken);
      locks.remove(held);
      if (result.code !== 0) onError(errorOfCode(result.code, job.id));
      return result;
    };
    const outcome = await options.handle(job, end, claim).catch((error: unknown): JobOutcome => {
      onError(error);
      return { kind: 'retry', delayMs: AFTER_ERROR_MS, reason: 'internal error' };
    });
    if (!beginNext) {
      const settle = () =>
        outcome.kind === 'done'
          ? end((lock) => options.finish(partition.index, lock))
          : endings.settle(partition.index, job.id, token, outcome);
      await untilDone(settle);
      locks.remove(held);
    }
    partition.active -= 1;
    beginNext?.();
    fill();
  }

  /** Repeats while Redis is unavailable. Any other error is reported: the job stays locked until its lock expires, then comes back. */
  async function untilDone(settle: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await settle();
        return;
      } catch (error) {
        if (state !== 'stopping') onError(error);
        if (state === 'stopping' || !(typedError(error) instanceof StorageUnavailable)) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  return {
    /** Starts to take jobs. Throws `StorageUnavailable`. */
    async start(): Promise<void> {
      await endings.ready();
      if (state !== 'new') return;
      state = 'running';
      locks.start();
      leases.start();
      void endings.checkStalled();
      stalledCheck = setInterval(() => void endings.checkStalled(), timings.stalledCheckMs);
      fill();
    },
    /** Takes no more jobs until `resume`. Jobs in flight go on, and one that is being fetched may still start. */
    pause(): void {
      isPaused = true;
    },
    resume(): void {
      isPaused = false;
      fill();
    },
    /**
     * A job of this partition was parked because the attempts to its address take all slots that it may have, and end soon: further ones are better taken a
     * little later.
     */
    foundCrowded(partition: number): void {
      const crowded = partitions.all[partition];
      if (crowded) partitions.foundCrowded(crowded);
    },
    /** Takes no new jobs and waits for those in flight, at most `graceMs`; shortly before, makes them give up. Resolves to whether all ended. */
    async stop(graceMs: number): Promise<boolean> {
      state = 'stopping';
      clearInterval(stalledCheck);
      clearTimeout(lookAgain);
      markers.close();
      fill();
      const giveUp = setTimeout(options.giveUp, Math.max(0, graceMs - timings.putBackMs));
      const timeUp = Promise.withResolvers<boolean>();
      const over = setTimeout(() => timeUp.resolve(false), graceMs);
      const hasEnded = await Promise.race([allEnded.promise.then(() => true), timeUp.promise]);
      clearTimeout(giveUp);
      clearTimeout(over);
      locks.stop();
      leases.stop();
      await endings.close();
      return hasEnded;
    },
  };
}
