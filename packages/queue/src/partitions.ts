/** What a consumer knows of the partitions' queues, and from which one it takes the next job, so that none keeps all slots. */

export interface Partition {
  readonly index: number;
  /**
   * `unknown`: it may have jobs; `busy`: it had one when last asked; `empty`: it had none; `failed`: it could not be
   * asked, and is not for a moment.
   */
  state: 'unknown' | 'busy' | 'empty' | 'failed';
  /** The number of jobs that are being taken from it, if that many wait. */
  taking: number;
  /** Jobs of it in flight. */
  active: number;
  /** When it is to be asked again although no marker came: a delayed job is due, or `ASK_AGAIN_MS` have passed. */
  askAgainAtMs: number;
  /** How many jobs are taken from it at once. */
  atOnce: number;
  /**
   * Until then it gets no more than an even share of the slots: its jobs are for addresses whose attempts take all
   * slots that they may have.
   */
  crowdedUntilMs: number;
}

/** Somebody looks whether an empty partition has jobs this often, since the process that took its marker may have died. */
const ASK_AGAIN_MS = 5_000;
const CROWDED_MS = 100;
/** A slot that was given up for another partition has been taken by it within this time, or was lost. */
const GIVEN_UP_MS = 50;

/**
 * Jobs taken at once: fewer at first, so that several workers share those of one event and the first one starts soon;
 * then twice as many while a partition has as many. 64 take Redis about a millisecond. Each taking costs a process as
 * much as three jobs.
 */
const FIRST_AT_ONCE = 32;
export const MAX_AT_ONCE = 64;

const NONE: readonly Partition[] = [];

export class Partitions {
  readonly all: readonly Partition[];
  readonly #concurrency: number;
  readonly #now: () => number;
  /** Slots that may be used: those of `concurrency`, or fewer. */
  #usable: number;
  /** The index of the partition that a job was taken from last. */
  #last = 0;
  /** Partitions without jobs that may have got markers. */
  #maybeMarked: Partition[] = [];
  /** Slots that are being freed for partitions that may have jobs. */
  #givenUp = { slots: 0, atMs: 0 };

  /** `concurrency`: jobs in flight at once, over all partitions. `now`: milliseconds since 1970. */
  constructor(count: number, concurrency: number, now: () => number = Date.now) {
    this.all = Array.from({ length: count }, (_, index) => ({
      index,
      state: 'unknown',
      taking: 0,
      active: 0,
      askAgainAtMs: 0,
      atOnce: FIRST_AT_ONCE,
      crowdedUntilMs: 0,
    }));
    this.#concurrency = concurrency;
    this.#now = now;
    this.#usable = concurrency;
  }

  /** From now on, only this share of the slots are used. */
  use(share: number): void {
    this.#usable = Math.ceil(share * this.#concurrency);
  }

  usesAll(): boolean {
    return this.#usable === this.#concurrency;
  }

  /** Whether all were asked, and none has a job. */
  isIdle(): boolean {
    return this.inUse() === 0 && this.all.every(({ state }) => state === 'empty');
  }

  /** Slots in use. */
  inUse(): number {
    return this.all.reduce((sum, { active, taking }) => sum + active + taking, 0);
  }

  /** Slots that are not in use. */
  room(): number {
    return Math.max(0, this.#usable - this.inUse());
  }

  hasRoom(): boolean {
    return this.room() > 0;
  }

  /** The partition to take the next job from; undefined if no slot is free, or none may have a job. */
  next(): Partition | undefined {
    if (!this.hasRoom()) return undefined;
    const [share, nowMs] = [this.#busyShare(), this.#now()];
    return (
      this.#rotate(({ state }) => state === 'unknown') ??
      this.#rotate(
        (partition) => partition.state === 'busy' && partition.active < this.#shareOf(partition, nowMs, share),
      )
    );
  }

  /**
   * Reserves slots for the jobs that are to be taken from a partition now: an even share while others are to be asked
   * too. Returns how many.
   */
  reserve(partition: Partition): number {
    const isToAsk = (other: Partition) => other !== partition && other.state === 'unknown' && other.taking === 0;
    const areOthersToAsk = this.#maybeMarked.length > 0 || this.all.some(isToAsk);
    const share = areOthersToAsk ? this.#evenShare() : this.#shareOf(partition);
    if (partition.state === 'unknown') this.#givenUp.slots = Math.max(0, this.#givenUp.slots - 1);
    partition.taking = Math.max(1, Math.min(partition.atOnce, this.room(), share - partition.active));
    return partition.taking;
  }

  /**
   * The marker of one of these partitions came, so it has jobs. The others were empty until then, and may have markers
   * by now.
   */
  markerCame(partition: Partition, waitedFor: readonly Partition[]): void {
    partition.state = 'unknown';
    this.#maybeMarked = waitedFor.filter((other) => other !== partition);
  }

  /**
   * Reserves up to `maxJobs` slots for the partitions that may have got markers, once after one came. `isSure`: of the
   * lease on the jobs of one. To be called after `reserve` for the one whose marker came.
   */
  reserveMarked(maxJobs: number, isSure: (partition: Partition) => boolean): readonly Partition[] {
    if (this.#maybeMarked.length === 0) return NONE;
    const marked = this.#maybeMarked.filter((one) => one.state === 'empty' && one.taking === 0 && isSure(one));
    this.#maybeMarked = [];
    const limit = Math.floor(Math.min(this.room(), maxJobs) / marked.length);
    if (limit < 1) return NONE;
    for (const one of marked) one.taking = Math.min(this.#evenShare(), limit);
    return marked;
  }

  /**
   * Whether the script that ends a job also takes the next one of the same partition. It does not if the partition has
   * more than its share of slots, if it could not be asked or is empty, or if the slot is needed to ask another partition.
   */
  mayTakeNext(partition: Partition): boolean {
    if (partition.state === 'failed' || (partition.state === 'empty' && this.hasRoom())) return false;
    if (this.all.length === 1) return true;
    const nowMs = this.#now();
    if (partition.active > this.#shareOf(partition, nowMs)) return false;
    const toAsk = this.all.reduce((sum, { state, taking }) => sum + Number(state === 'unknown' && taking === 0), 0);
    if (nowMs - this.#givenUp.atMs > GIVEN_UP_MS) this.#givenUp = { slots: 0, atMs: nowMs };
    // One slot for each of them: many jobs end at once.
    if (this.#givenUp.slots >= toAsk) return true;
    this.#givenUp.slots += 1;
    return false;
  }

  /** It could not be asked: its slots are free, and it is not asked before `mayBeAskedAgain`. */
  couldNotAsk(partition: Partition): void {
    partition.state = 'failed';
    partition.taking = 0;
  }

  mayBeAskedAgain(partition: Partition): void {
    if (partition.state === 'failed') partition.state = 'unknown';
  }

  /** It had no job; the next one is due then (undefined: there is none). */
  foundEmpty(partition: Partition, dueAtMs: number | undefined): void {
    partition.state = 'empty';
    partition.atOnce = FIRST_AT_ONCE;
    this.#askAgain(partition, dueAtMs);
  }

  /** It had as many jobs as were to be taken. */
  tookAll(partition: Partition): void {
    partition.atOnce = Math.min(MAX_AT_ONCE, 2 * partition.atOnce);
  }

  /** One of its jobs was parked, and a slot will soon be free: for a moment the partition gets only its even share. */
  foundCrowded(partition: Partition): void {
    partition.crowdedUntilMs = this.#now() + CROWDED_MS;
  }

  /** Somebody has looked, and the next job of a partition is due then (undefined: there is none). */
  looked(partition: Partition, dueAtMs: number | undefined): void {
    if (partition.state !== 'empty') return;
    if (dueAtMs !== undefined && dueAtMs <= this.#now()) partition.state = 'unknown';
    else this.#askAgain(partition, dueAtMs);
  }

  /** How long an empty partition need not be asked again, in milliseconds; 0 if it is to be asked now. */
  restMs({ askAgainAtMs }: Partition): number {
    const leftMs = askAgainAtMs - this.#now();
    // It is never set further ahead than this: the clock was set back.
    return leftMs > ASK_AGAIN_MS ? 0 : Math.max(0, leftMs);
  }

  #askAgain(partition: Partition, dueAtMs = Number.POSITIVE_INFINITY): void {
    partition.askAgainAtMs = Math.min(dueAtMs, this.#now() + ASK_AGAIN_MS);
  }

  #evenShare(): number {
    return Math.ceil(this.#usable / this.all.length);
  }

  /** An even share among those that have jobs, or may have some. */
  #busyShare(): number {
    const busy = this.all.reduce((sum, { state }) => sum + Number(state === 'busy' || state === 'unknown'), 0);
    return Math.ceil(this.#usable / Math.max(1, busy));
  }

  /** The slots that a partition may have. `busy` spares a caller that asks for several the calculation. */
  #shareOf({ crowdedUntilMs }: Partition, nowMs = this.#now(), busy = this.#busyShare()): number {
    return nowMs < crowdedUntilMs ? this.#evenShare() : busy;
  }

  /** The next partition in turn that fits and from which nothing is being taken. */
  #rotate(fits: (partition: Partition) => boolean): Partition | undefined {
    const { length } = this.all;
    for (let step = 1; step <= length; step++) {
      const partition = this.all[(this.#last + step) % length];
      if (!partition || partition.taking > 0 || !fits(partition)) continue;
      this.#last = partition.index;
      return partition;
    }
    return undefined;
  }
}
