/** What a consumer is given: how jobs are taken, handled and ended, and how soon those of dead workers are taken over. */
import type { LockedJob, LockTimes, NextJob, Take } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';
import type { JobOutcome } from './endings.ts';
import type { Claim, LeasesOptions } from './leases.ts';
import type { LostRepliesOptions } from './lost-replies.ts';

/** What was taken with the end of a job. */
export interface Ended<J> {
  /** 0, or BullMQ's error code where the job could not be ended. */
  code: number;
  /** What the queue gave; undefined if nothing was taken from it, and jobs may be left. */
  next: NextJob<J> | undefined;
  /** Jobs of deliveries that were parked. */
  parkedJobs?: readonly J[];
}

/**
 * Ends a job by a script of the caller, which also takes the next one. May be repeated after an error. `room`: how many
 * further jobs this process may take, besides one in place of this.
 */
export type EndJob<J, L = LockedJob> = <E extends Ended<J>>(move: (lock: L, room: number) => Promise<E>) => Promise<E>;

export interface ConsumerOptions<J extends { id: string }>
  extends Pick<LeasesOptions, 'watch' | 'findWatched' | 'onTakenOver' | 'clocks'>,
    Pick<LostRepliesOptions, 'onDisconnect' | 'putBackLost' | 'onPutBack'> {
  redis: Redis | Cluster;
  /** The prefixes of the partitions' keys, in order. */
  partitionPrefixes: readonly string[];
  /** Jobs in flight at once, over all partitions. */
  concurrency: number;
  /**
   * Resolves to when the next job of each of these partitions is due (0: one waits; undefined: there is none), or to an
   * error. Takes nothing.
   */
  look: (partitions: readonly number[]) => Promise<(number | undefined | Error)[]>;
  /**
   * Takes jobs of each partition in `takes`, and of each one in `marked` that has a marker, which is removed. Resolves
   * for each, first those of `takes`, to the jobs or an error. If fewer than `limit` wait, the last one says when the
   * next is due; otherwise jobs may be left. In Redis Cluster it is called for one partition at once.
   */
  take: (takes: readonly Take[], marked: readonly Take[], lock: LockTimes) => Promise<(NextJob<J>[] | Error)[]>;
  /** Ends a job that is over and takes the next one. */
  finish: (partition: number, lock: LockedJob) => Promise<Ended<J>>;
  /**
   * Handles a job. If it calls `end`, the job has ended and the outcome says nothing more; it must not end with another
   * outcome then. What must not happen twice starts only while `claim` is sure; otherwise the job is put back
   * (`snoozed`), which fails if another worker has it.
   */
  handle: (job: J, end: EndJob<J>, claim: Claim) => Promise<JobOutcome>;
  /** Called when the grace of a stop is nearly over: jobs in flight must come to an outcome at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
  timings?: Partial<ConsumerTimings> | undefined;
}

/** How soon the queue takes over the jobs of dead or stopping workers. Tests on whole processes use shorter times. */
export interface ConsumerTimings {
  /** How often a worker renews the lease on its jobs. After four times without, others take the jobs over. */
  renewMs: number;
  /** How soon a worker that may have missed a reply asks for the jobs in it. It asks again with growing pauses. */
  askLostMs: number;
  /**
   * How long a job stays locked to its worker. Longer than any attempt; renewed before half of it has passed. The jobs of
   * a dead worker that has no lease, one of an earlier version, wait for its end.
   */
  lockMs: number;
  /** How often the queue looks for jobs whose lock has expired. */
  stalledCheckMs: number;
  /** The last part of the grace of a stop, in which jobs that gave up are put back. */
  putBackMs: number;
  /** How long the end of a job waits at most while more jobs of a burst are being taken. */
  burstMs: number;
  /** How long a process uses only a share of its slots once it takes jobs, unless one of them ends. 0: not at all. */
  slowStartMs: number;
}
