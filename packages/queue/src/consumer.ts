/**
 * Takes jobs from the partitions' queues, as many at once as a process may have in flight, and ends them. It replaces
 * BullMQ's Worker and works on BullMQ's keys: the end of one job and the taking of the next can be one step with what
 * else is stored (docs/decisions, 45).
 */
import { type LockedJob, type NextJob, StorageUnavailable, type Take, withTimeLimit } from '@posthorn/core';
import { Cluster } from 'ioredis';
import { createBurst } from './burst.ts';
import type { ConsumerOptions, ConsumerTimings, Ended, EndJob } from './consumer-options.ts';
import { createEndings, errorOfCode, errorOfJob, type JobOutcome, typedError } from './endings.ts';
import { createJobLocks, type Lock } from './job-locks.ts';
import { type Claim, Leases } from './leases.ts';
import { createLostReplies, type Request } from './lost-replies.ts';
import { createMarkers } from './markers.ts';
import { MAX_AT_ONCE, type Partition, Partitions } from './partitions.ts';

const TIMINGS: ConsumerTimings = {
  renewMs: 1_000,
  askLostMs: 1_000,
  lockMs: 30_000,
  stalledCheckMs: 15_000,
  putBackMs: 1_000,
  burstMs: 10,
  slowStartMs: 100,
};
/**
 * The share of its slots that a process uses until its first job has ended, or until `slowStartMs` after it began to
 * take jobs: it knows no address yet, and would take more jobs than unknown addresses may have attempts in flight.
 */
const SLOW_START_SHARE = 0.3;
/** Delay after which a job comes back whose handler threw, because of a bug or an error of Redis. */
const AFTER_ERROR_MS = 15_000;
/** Pause before Redis is asked again after an error. */
const RETRY_MS = 1_000;
/** How often empty partitions are checked while all slots are in use: the process doesn't wait for markers then. */
const LOOK_AGAIN_MS = 250;

/** A job in flight. */
interface Running<J> {
  partition: Partition;
  job: J;
  lock: Lock;
  /** Set once the job has ended: begins the jobs that were taken in the same step. */
  beginNext?: () => void;
}

export class Consumer<J extends { id: string }> {
  readonly #options: ConsumerOptions<J>;
  readonly #timings: ConsumerTimings;
  readonly #partitions: Partitions;
  readonly #endings: ReturnType<typeof createEndings>;
  readonly #locks: ReturnType<typeof createJobLocks>;
  readonly #burst: ReturnType<typeof createBurst>;
  readonly #leases: Leases;
  readonly #lostReplies: ReturnType<typeof createLostReplies>;
  readonly #markers: ReturnType<typeof createMarkers>;
  readonly #allEnded = Promise.withResolvers<void>();
  #state: 'new' | 'running' | 'stopping' = 'new';
  #isPaused = false;
  #stalledCheck: NodeJS.Timeout | undefined;
  #lookAgain: NodeJS.Timeout | undefined;
  /** Ends the slow start, even if a partition can't be asked. */
  #slowStartTimer: NodeJS.Timeout | undefined;

  constructor(options: ConsumerOptions<J>) {
    const timings = { ...TIMINGS, ...options.timings };
    const partitions = new Partitions(options.partitionPrefixes.length, options.concurrency);
    const onError = (error: unknown) => this.#report(error);
    this.#options = options;
    this.#timings = timings;
    this.#partitions = partitions;
    this.#endings = createEndings({ ...options, ...timings, onError });
    this.#locks = createJobLocks({ lockMs: timings.lockMs, extend: this.#endings.extendLocks, onError });
    this.#burst = createBurst(timings.burstMs);
    this.#leases = new Leases({
      ...options,
      partitions: options.partitionPrefixes.length,
      hasJobs: (partition) => (partitions.all[partition]?.active ?? 0) > 0,
      renewMs: timings.renewMs,
      onError,
    });
    this.#lostReplies = createLostReplies({ ...options, ...timings, knownIds: this.#locks.idsOf, onError });
    this.#markers = createMarkers({
      ...options,
      partitions,
      onError,
      canTake: () => this.#canTake() && partitions.hasRoom(),
      look: (empty) => this.#look(empty),
      changed: () => this.#fill(),
    });
  }

  /** Starts to take jobs. Throws `StorageUnavailable`. */
  async start(): Promise<void> {
    await this.#endings.ready();
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#locks.start();
    this.#leases.start();
    this.#lostReplies.start();
    void this.#endings.checkStalled();
    this.#stalledCheck = setInterval(() => void this.#endings.checkStalled(), this.#timings.stalledCheckMs);
    if (this.#timings.slowStartMs > 0) this.#partitions.use(SLOW_START_SHARE);
    this.#fill();
  }

  /** Takes no more jobs until `resume`. Jobs in flight go on, and one that is being fetched may still start. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#fill();
  }

  /**
   * To be called when a job of this partition was parked because its address uses all slots that it may have, with
   * attempts that end soon: further jobs are better taken a little later.
   */
  foundCrowded(partition: number): void {
    const crowded = this.#partitions.all[partition];
    if (crowded) this.#partitions.foundCrowded(crowded);
  }

  /**
   * Takes no new jobs and waits up to `graceMs` for those in flight; shortly before that, makes them give up. Resolves
   * to whether all ended.
   */
  async stop(graceMs: number): Promise<boolean> {
    this.#state = 'stopping';
    clearInterval(this.#stalledCheck);
    clearTimeout(this.#lookAgain);
    clearTimeout(this.#slowStartTimer);
    this.#markers.close();
    this.#fill();
    // At least half of a short grace period is left to the jobs in flight.
    const giveUpAfterMs = Math.max(graceMs / 2, graceMs - this.#timings.putBackMs);
    const giveUp = setTimeout(this.#options.giveUp, giveUpAfterMs);
    const allEnded = this.#allEnded.promise.then(() => true);
    const hasEnded = await withTimeLimit(graceMs, allEnded).catch(() => false);
    clearTimeout(giveUp);
    this.#locks.stop();
    this.#leases.stop();
    this.#lostReplies.stop();
    await this.#endings.close();
    return hasEnded;
  }

  #report(error: unknown): void {
    this.#options.onError(typedError(error));
  }

  /** Ends the slow start if a job has come. Otherwise it goes on: the first jobs get only a share of the slots. */
  #endSlowStartUnlessIdle(): void {
    this.#slowStartTimer = undefined;
    if (!this.#partitions.isIdle()) this.#endSlowStart();
  }

  /** From now on all slots are used. */
  #endSlowStart(): void {
    clearTimeout(this.#slowStartTimer);
    this.#partitions.use(1);
    this.#fill();
  }

  #canTake(): boolean {
    return this.#state === 'running' && !this.#isPaused;
  }

  /** Takes jobs until all slots are in use or no partition has any; then waits for markers. */
  #fill(): void {
    const partitions = this.#partitions;
    if (this.#state === 'stopping' && partitions.inUse() === 0) this.#allEnded.resolve();
    if (!this.#canTake()) return;
    this.#takeAll();
    if (partitions.hasRoom()) this.#markers.wait();
    else this.#lookAgain ??= setTimeout(() => void this.#lookAtEmpty(), LOOK_AGAIN_MS);
  }

  /** Checks whether empty partitions have jobs. Taking jobs from each would cost more, and need a lease on its jobs. */
  async #look(empty: readonly Partition[]): Promise<void> {
    const dueAtMs = await this.#options.look(empty.map(({ index }) => index));
    for (const [i, partition] of empty.entries()) {
      const due = dueAtMs[i];
      if (due instanceof Error) this.#couldNotTake([partition], due);
      else this.#partitions.looked(partition, due);
    }
  }

  async #lookAtEmpty(): Promise<void> {
    const partitions = this.#partitions;
    const empty = partitions.hasRoom() ? [] : partitions.all.filter((partition) => partition.state === 'empty');
    if (empty.length > 0) await this.#look(empty).catch((error) => this.#report(error));
    this.#lookAgain = undefined;
    this.#fill();
  }

  /**
   * Takes jobs of all partitions that may have some: one call for up to 64 jobs, or in Redis Cluster one call for each
   * partition.
   */
  #takeAll(): void {
    const partitions = this.#partitions;
    const isSure = ({ index }: Partition) => this.#leases.isSure(index);
    let together: Partition[] = [];
    let jobs = 0;
    for (let next = partitions.next(); next; next = partitions.next()) {
      if (!partitions.usesAll())
        this.#slowStartTimer ??= setTimeout(() => this.#endSlowStartUnlessIdle(), this.#timings.slowStartMs);
      const limit = partitions.reserve(next);
      if (!isSure(next)) void this.#takeWithLease(next);
      else if (this.#options.redis instanceof Cluster) void this.#take([next]);
      else {
        if (jobs + limit > MAX_AT_ONCE) {
          void this.#take(together);
          [together, jobs] = [[], 0];
        }
        together.push(next);
        jobs += limit;
      }
    }
    const marked = partitions.reserveMarked(MAX_AT_ONCE - jobs, isSure);
    if (together.length > 0 || marked.length > 0) void this.#take(together, marked);
  }

  /** Renews or acquires the lease on the jobs of a partition, and takes jobs of it. */
  async #takeWithLease(partition: Partition): Promise<void> {
    try {
      await this.#leases.ensure(partition.index);
    } catch (error) {
      this.#couldNotTake([partition], error);
      return;
    }
    await this.#take([partition]);
  }

  /**
   * Takes jobs and begins them. The process must be sure of its leases and have reserved slots. The partitions in
   * `marked` have jobs only if they have markers.
   */
  async #take(takes: readonly Partition[], marked: readonly Partition[] = []): Promise<void> {
    const all = [...takes, ...marked];
    const isBurst = takes.some(({ state, taking }) => state === 'busy' && taking > 1);
    if (isBurst) this.#burst.begin();
    const requests = all.map((partition, i) => this.#request(partition, i >= takes.length));
    const wanted = requests.map(({ partition: { index, taking }, token }): Take => {
      return { partition: index, token, limit: taking };
    });
    const lock = { lockMs: this.#timings.lockMs, nowMs: Date.now() };
    let taken: (NextJob<J>[] | Error)[];
    try {
      taken = await this.#options.take(wanted.slice(0, takes.length), wanted.slice(takes.length), lock);
    } catch (error) {
      for (const request of requests) this.#lostReplies.over(request, true);
      this.#couldNotTake(all, error);
      return;
    } finally {
      if (isBurst) void this.#burst.taken();
    }
    const begins = requests.map((request, i) => this.#took(request, taken[i] ?? []));
    // Requests the next jobs first: Redis takes them while these begin.
    this.#fill();
    for (const begin of begins) begin();
  }

  /** Notes which jobs were taken from a partition. Returns a function that begins them. */
  #took(request: Request, taken: NextJob<J>[] | Error): () => void {
    const { partition, token } = request;
    if (taken instanceof Error) {
      this.#lostReplies.over(request, true);
      this.#couldNotTake([partition], taken);
      return () => undefined;
    }
    if (taken.length === partition.taking) this.#partitions.tookAll(partition);
    partition.taking = 0;
    const claim = this.#leases.claim(partition.index, token);
    const jobs = taken.flatMap((one) => this.#found(partition, one) ?? []);
    this.#began(partition, jobs);
    return () => this.#beginAll(request, jobs, claim);
  }

  /** Asks these partitions again after a pause. */
  #couldNotTake(partitions: readonly Partition[], error: unknown): void {
    for (const partition of partitions) this.#partitions.couldNotAsk(partition);
    if (this.#state !== 'stopping') {
      this.#report(error);
      setTimeout(() => {
        for (const partition of partitions) this.#partitions.mayBeAskedAgain(partition);
        this.#fill();
      }, RETRY_MS);
    }
    this.#fill();
  }

  /** Notes whether the queue of a partition had a job. Returns the job. */
  #found(partition: Partition, taken: NextJob<J>): J | undefined {
    if ('dueAtMs' in taken) {
      this.#partitions.foundEmpty(partition, taken.dueAtMs);
      return undefined;
    }
    partition.state = 'busy';
    return taken.job;
  }

  /** Notes that jobs of a partition are requested, with a new token for their locks. */
  #request(partition: Partition, mayTakeNone = false): Request {
    return this.#lostReplies.sent(partition, this.#leases.newToken(partition.index, mayTakeNone));
  }

  #beginAll(request: Request, jobs: readonly J[], claim: Claim): void {
    const { partition, token } = request;
    for (const job of jobs) {
      void this.#run({ partition, job, lock: this.#locks.add(partition.index, job.id, token) }, claim);
    }
    this.#lostReplies.over(request);
  }

  /** Handles a job, ends it unless the handler has done so, and begins the jobs that were taken in the same step. */
  async #run(running: Running<J>, claim: Claim): Promise<void> {
    const { partition, job, lock } = running;
    const end: EndJob<J> = (move) => this.#end(running, move);
    const outcome = await this.#options.handle(job, end, claim).catch((error: unknown): JobOutcome => {
      this.#report(errorOfJob(error, job.id));
      return { kind: 'retry', endedAtMs: Date.now(), delayMs: AFTER_ERROR_MS, reason: 'internal error' };
    });
    if (!running.beginNext) {
      lock.isEnding = true;
      await this.#untilDone(job.id, () =>
        outcome.kind === 'done'
          ? end((locked) => this.#options.finish(partition.index, locked))
          : this.#endings.settle(partition.index, job.id, lock.token, outcome),
      );
      this.#locks.remove(lock);
    }
    partition.active -= 1;
    running.beginNext?.();
    if (this.#partitions.usesAll()) this.#fill();
    else this.#endSlowStart();
  }

  /** Ends a job by a script, which also takes the next ones. */
  async #end<E extends Ended<J>>(running: Running<J>, move: (lock: LockedJob, room: number) => Promise<E>): Promise<E> {
    await this.#burst.over();
    const { partition, job, lock } = running;
    const mayTake = this.#canTake() && this.#leases.isSure(partition.index);
    const room = this.#partitions.room();
    const takesNext = mayTake && this.#partitions.mayTakeNext(partition);
    const request = takesNext || (mayTake && room > 0) ? this.#request(partition) : undefined;
    lock.isEnding = true;
    const locked = {
      jobId: job.id,
      token: lock.token,
      nextToken: takesNext ? request?.token : undefined,
      laneToken: request?.token,
      lockMs: this.#timings.lockMs,
      nowMs: Date.now(),
    };
    const result = await move(locked, room).catch((error: unknown) => {
      lock.isEnding = false;
      if (request) this.#lostReplies.over(request, true);
      throw error;
    });
    // If this call was repeated, an earlier try may have ended the job: each try may have taken jobs.
    if (request && result.code !== 0) request.isDoubtful = true;
    running.beginNext = this.#claimNext(partition, result, request);
    this.#locks.remove(lock);
    if (!takesNext) void this.#endings.wakeIfLimited(partition.index);
    if (result.code !== 0) this.#report(errorOfCode(result.code, job.id));
    return result;
  }

  /** Claims the jobs that ending another job took, before another worker may. Returns a function that begins them. */
  #claimNext(partition: Partition, { next, parkedJobs = [] }: Ended<J>, request: Request | undefined): () => void {
    const job = next && this.#found(partition, next);
    if (!request) return () => undefined;
    const claim = this.#leases.claim(partition.index, request.token);
    const jobs = job ? [job, ...parkedJobs] : parkedJobs;
    return () => {
      this.#began(partition, jobs);
      this.#beginAll(request, jobs, claim);
    };
  }

  /** Counts jobs that are in flight from now on. */
  #began(partition: Partition, jobs: readonly J[]): void {
    partition.active += jobs.length;
    // One partition alone shares its slots with none.
    if (this.#partitions.all.length > 1) for (const job of jobs) partition.addresses.took(this.#options.addressOf(job));
  }

  /** Repeats while Redis is unavailable. After any other error, the job comes back when its lock has expired. */
  async #untilDone(jobId: string, settle: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await settle();
        return;
      } catch (error) {
        if (this.#state !== 'stopping') this.#report(errorOfJob(error, jobId));
        if (this.#state === 'stopping' || !(typedError(error) instanceof StorageUnavailable)) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
