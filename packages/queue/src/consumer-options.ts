/** The options of a consumer: how it takes, handles and ends jobs, and how soon it takes over those of dead workers. */
import type { LockedJob, LockTimes, NextJob, Take } from '@posthorn/core';
import type { Cluster, Redis } from 'ioredis';
import type { JobOutcome } from './endings.ts';
import type { Claim, LeasesOptions } from './leases.ts';
import type { LostRepliesOptions } from './lost-replies.ts';

/** The result of ending a job: the jobs that were taken in the same step. */
export interface Ended<J> {
  /** 0, or BullMQ's error code where the job could not be ended. */
  code: number;
  /** The next job of the queue; undefined if the script took none from it, though jobs may be left. */
  next: NextJob<J> | undefined;
  /** Jobs of deliveries that were parked. */
  parkedJobs?: readonly J[];
}

/**
 * Ends a job by a script of the caller, which also takes the next one. May be repeated after an error. `room`: how many
 * more jobs this process may take, besides the one that replaces this job.
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
  /** The address that a job is for. Two may have the same text, but hardly ever do. */
  addressOf: (job: J) => string;
  /**
   * Resolves to the time at which the next job of each partition is due (0: one waits; undefined: there is none), or to
   * an error. Takes nothing.
   */
  look: (partitions: readonly number[]) => Promise<(number | undefined | Error)[]>;
  /**
   * Takes jobs of each partition in `takes`, and of each one in `marked` that has a marker; removes the marker.
   * Resolves to the jobs or an error of each partition, those of `takes` first. If fewer than `limit` jobs wait, the
   * last one says when the next is due; otherwise jobs may be left. In Redis Cluster each call is for one partition.
   */
  take: (takes: readonly Take[], marked: readonly Take[], lock: LockTimes) => Promise<(NextJob<J>[] | Error)[]>;
  /** Ends a job that is over and takes the next one. */
  finish: (partition: number, lock: LockedJob) => Promise<Ended<J>>;
  /**
   * Handles a job. If the handler calls `end`, that ends the job, and the returned outcome must not be another one.
   * The handler starts what must not happen twice only while `claim` is sure; otherwise it puts the job back
   * (`snoozed`), which fails if another worker has it.
   */
  handle: (job: J, end: EndJob<J>, claim: Claim) => Promise<JobOutcome>;
  /** Called when the grace period of a stop is nearly over: the handlers in flight must return at once. */
  giveUp: () => void;
  onError: (error: Error) => void;
  timings?: Partial<ConsumerTimings> | undefined;
}

/** How soon the queue takes over the jobs of dead or stopping workers. Tests on whole processes use shorter times. */
export interface ConsumerTimings {
  /** How often a worker renews the lease on its jobs. If it misses four renewals, others take the jobs over. */
  renewMs: number;
  /** How soon a worker that may have missed a reply asks Redis for its jobs. It asks again with growing pauses. */
  askLostMs: number;
  /**
   * How long a job stays locked to its worker. Longer than any attempt; renewed before half of it has passed. The jobs
   * of a dead worker of BullMQ, which has no lease, are taken over only when their locks expire.
   */
  lockMs: number;
  /** How often the queue looks for jobs whose lock has expired. */
  stalledCheckMs: number;
  /** The last part of the grace period of a stop, in which jobs that gave up are put back. */
  putBackMs: number;
  /** The longest that ending a job waits while a burst of jobs is being taken. */
  burstMs: number;
  /** How long a process that begins to take jobs uses only a share of its slots, unless a job ends. 0: not at all. */
  slowStartMs: number;
}
