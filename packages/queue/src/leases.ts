/**
 * Keeps the leases of this process on its jobs, one for each partition. A lease is renewed every second while the
 * process has jobs there; if renewals stop, other workers take the jobs over within seconds (docs/decisions, 50). So a
 * process that was suspended must not start the jobs that it had taken before.
 */
import { randomBytes } from 'node:crypto';
import { StorageUnavailable } from '@posthorn/core';

/** After this many checks without a renewal, the jobs of a worker are taken over. */
const MAX_CHECKS = 4;
/** The shortest time between two checks, as a share of the interval: timers are not exact. */
const CHECK_SHARE = 0.95;
/**
 * How long this process relies on a renewal, in intervals, counted from before it was sent. Others take over after
 * `(MAX_CHECKS - 1) * CHECK_SHARE` (2.85) intervals at the earliest.
 */
const RELY_SHARE = 2.5;
/** After Redis was away or slow, no worker is checked for this many intervals: others may need longer to reconnect. */
const QUIET_SHARE = 5;
/** Jobs put back by one script. */
const PUT_BACK_AT_ONCE = 200;

interface Watched {
  /**
   * The state of this process's lease. `lost`: it had none, so others may have the jobs taken before; it has one as
   * `nextOwner` now.
   */
  state: 'renewed' | 'lost' | undefined;
  /** Jobs of dead workers that were put back. */
  putBack: number;
  /** Whether more are to be put back. */
  isMore: boolean;
}

export interface LeasesOptions {
  partitions: number;
  /**
   * Renews the lease of `owner`, if given, or begins one of `nextOwner` in its place. Takes over the jobs of dead
   * workers if a check is due, or if the call `goesOn` with those that the previous call left; not if `checkMs` is 0.
   */
  watch: (
    partition: number,
    watch: {
      owner: string | undefined;
      nextOwner: string;
      checkMs: number;
      maxChecks: number;
      limit: number;
      goesOn: boolean;
    },
  ) => Promise<Watched>;
  /** Resolves to the partitions in which a worker has or just had jobs. */
  findWatched: () => Promise<ReadonlySet<number>>;
  /** Whether this process has jobs of a partition. */
  hasJobs: (partition: number) => boolean;
  /** Interval of renewals and checks. */
  renewMs: number;
  /** Called when jobs of a dead worker were put back. */
  onTakenOver: (jobs: number) => void;
  onError: (error: unknown) => void;
  /** Clocks, both in milliseconds: a process may be suspended in a way that only one of them notices. */
  clocks?: readonly (() => number)[] | undefined;
}

/** Tells whether a job that this process has taken is still its own. */
export interface Claim {
  /** Whether it is certain, without asking Redis, that no other worker has the job. */
  isSure(): boolean;
  /** Resolves to whether the job is still this process's; may renew the lease. Rejects if Redis is away or slow. */
  confirm(): Promise<boolean>;
}

interface Lease {
  /** Increased whenever jobs that were taken before may be lost. The name of the owner ends with it. */
  epoch: number;
  /** The time until which this process relies on its last renewal, by each clock. */
  untilMs: number[];
  /** No checks before this time, by the first clock. */
  quietUntilMs: number;
  /** Whether jobs were taken since the last renewal. */
  isUsed: boolean;
  isBusy: boolean;
}

export class Leases {
  readonly #options: LeasesOptions;
  readonly #clocks: readonly (() => number)[];
  readonly #all: Lease[];
  readonly #id = randomBytes(9).toString('base64url');
  /** The number of the next token. */
  #number = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Looking where others have jobs: while Redis is away, that takes until it is back. */
  #isLooking = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#clocks = options.clocks ?? [() => performance.now(), Date.now];
    this.#all = Array.from({ length: options.partitions }, () => ({
      epoch: 0,
      untilMs: [],
      quietUntilMs: Number.NEGATIVE_INFINITY,
      isUsed: false,
      isBusy: false,
    }));
  }

  start(): void {
    const run = () => void this.#renewAll().catch(this.#options.onError);
    run();
    this.#timer = setInterval(run, this.#options.renewMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Returns a new token for the lock of a job: if this process takes the same job twice, the tokens differ. The lease
   * is renewed in the next interval; with `mayTakeNone` only if the process has jobs then.
   */
  newToken(partition: number, mayTakeNone = false): string {
    const lease = this.#leaseOf(partition);
    if (!mayTakeNone) lease.isUsed = true;
    return `${this.#ownerIn(lease.epoch)}:${this.#number++}`;
  }

  isSure(partition: number): boolean {
    return this.#isSure(this.#leaseOf(partition));
  }

  /** Renews the lease unless it is sure. Rejects with `StorageUnavailable` if Redis is away or too slow for a lease. */
  async ensure(partition: number): Promise<void> {
    const lease = this.#leaseOf(partition);
    for (let turn = 0; turn < 3 && !this.#isSure(lease); turn++) await this.#renew(partition, true);
    if (!this.#isSure(lease)) throw new StorageUnavailable('Redis responds too slowly to renew a lease');
  }

  /** The claim on a job. To be called as soon as it was taken with a token. */
  claim(partition: number, token: string): Claim {
    const lease = this.#leaseOf(partition);
    const epoch = token.startsWith(`${this.#ownerIn(lease.epoch)}:`) ? lease.epoch : undefined;
    return {
      isSure: () => lease.epoch === epoch && this.#isSure(lease),
      confirm: async () => {
        if (lease.epoch === epoch) await this.ensure(partition);
        return lease.epoch === epoch;
      },
    };
  }

  #leaseOf(partition: number): Lease {
    const lease = this.#all[partition];
    if (!lease) throw new RangeError(`No partition ${partition}: there are ${this.#all.length}`);
    return lease;
  }

  #ownerIn(epoch: number): string {
    return `${this.#id}.${epoch}`;
  }

  #isSure({ untilMs }: Lease): boolean {
    for (let i = 0; i < this.#clocks.length; i++) {
      if (!((untilMs[i] ?? Number.NEGATIVE_INFINITY) > (this.#clocks[i]?.() ?? 0))) return false;
    }
    return true;
  }

  #readClocks(): number[] {
    return this.#clocks.map((now) => now());
  }

  /** Renews the leases on all jobs of this process, and looks for dead workers wherever one may have jobs. */
  async #renewAll(): Promise<void> {
    const { hasJobs, findWatched } = this.#options;
    const own = this.#all.flatMap(({ isUsed }, partition) => (isUsed || hasJobs(partition) ? [partition] : []));
    const renew = (partition: number) => this.#renewInTurn(partition);
    const lookAtOthers = async () => {
      if (this.#isLooking || own.length === this.#all.length) return;
      this.#isLooking = true;
      const watched = await findWatched().finally(() => {
        this.#isLooking = false;
      });
      await Promise.all([...watched].filter((partition) => !own.includes(partition)).map(renew));
    };
    // Renewals of own leases are sent first; none waits for another, or for the search for other workers.
    await Promise.all([...own.map(renew), lookAtOthers()]);
  }

  async #renewInTurn(partition: number): Promise<void> {
    const lease = this.#leaseOf(partition);
    if (lease.isBusy) return;
    lease.isBusy = true;
    const isRenewal = this.#options.hasJobs(partition) || lease.isUsed;
    lease.isUsed = false;
    await this.#renew(partition, isRenewal).catch(this.#options.onError);
    lease.isBusy = false;
  }

  /** Renews the lease of a partition, or only checks on others. Rejects if Redis is unavailable. */
  async #renew(partition: number, isRenewal: boolean, goesOn = false): Promise<void> {
    const { watch, renewMs, onTakenOver } = this.#options;
    const lease = this.#leaseOf(partition);
    const { epoch } = lease;
    const sentAt = this.#readClocks();
    const [nowMs = 0] = sentAt;
    const checkMs = nowMs < lease.quietUntilMs ? 0 : Math.round(renewMs * CHECK_SHARE);
    const beQuiet = () => {
      lease.quietUntilMs = (this.#readClocks()[0] ?? 0) + QUIET_SHARE * renewMs;
    };
    const owner = isRenewal ? this.#ownerIn(epoch) : undefined;
    const nextOwner = this.#ownerIn(epoch + 1);
    const limits = { checkMs, maxChecks: MAX_CHECKS, limit: PUT_BACK_AT_ONCE };
    const watched = await watch(partition, { owner, nextOwner, ...limits, goesOn }).catch((error: unknown) => {
      beQuiet();
      throw error;
    });
    if ((this.#readClocks()[0] ?? 0) - nowMs > renewMs) beQuiet();
    if (isRenewal && lease.epoch === epoch) {
      if (watched.state !== 'renewed') lease.epoch += 1;
      lease.untilMs = sentAt.map((atMs) => atMs + RELY_SHARE * renewMs);
    }
    if (watched.putBack > 0) onTakenOver(watched.putBack);
    if (watched.isMore) await this.#renew(partition, false, true);
  }
}
