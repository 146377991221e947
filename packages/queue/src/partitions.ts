/** Tracks the partitions' queues, and picks the one to take the next job from: none may keep all slots. */
import { RecentAddresses } from './recent-addresses.ts';

export interface Partition {
  readonly index: number;
  /**
   * `unknown`: it may have jobs; `busy`: it had one when last asked; `empty`: it had none; `failed`: asking it failed,
   * and it is not asked again for a moment.
   */
  state: 'unknown' | 'busy' | 'empty' | 'failed';
  /** The number of jobs that are being taken from it; fewer may come. */
  taking: number;
  /** Jobs of it in flight. */
  active: number;
  /** When slots were last reserved for it. */
  reservedAtMs: number;
  /** Slots that ending jobs of others have given up for it since, and when the last one was. */
  owed: number;
  owedAtMs: number;
  /** When it is asked again even without a marker: a delayed job is due, or `ASK_AGAIN_MS` have passed. */
  askAgainAtMs: number;
  /** How many jobs are taken from it at once. */
  atOnce: number;
  /**
   * For `CROWDED_MS` from this time on it gets no more than an even share of the slots: its jobs are for addresses that
   * already use all slots that they may have.
   */
  crowdedAtMs: number;
  /** Those of its latest jobs. Its share of the slots grows with their number, so that each address gets as much. */
  readonly addresses: RecentAddresses;
}

/** How often each empty partition is checked for jobs, since the process that took its marker may have died. */
const ASK_AGAIN_MS = 5_000;
const CROWDED_MS = 100;
/** How long a slot counts as given up for another partition: by then the partition has taken it, or it was lost. */
const GIVEN_UP_MS = 50;
/**
 * How long a partition keeps a slot that another one with jobs lacks only because they can't be divided evenly. Each
 * change is a call of its own, while a job that ends takes the next one of its partition in the same call.
 */
const ODD_SLOT_MS = 50;

/**
 * Jobs taken in one call: few at first, so that several workers share the jobs of one event and the first job starts
 * soon; the number doubles while a partition has that many. 64 jobs take Redis about a millisecond. Each call costs a
 * process as much as three jobs.
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

  /** `concurrency`: jobs in flight at once, over all partitions. `now`: milliseconds since 1970. */
  constructor(count: number, concurrency: number, now: () => number = Date.now) {
    this.all = Array.from({ length: count }, (_, index) => ({
      index,
      state: 'unknown',
      taking: 0,
      active: 0,
      reservedAtMs: 0,
      owed: 0,
      owedAtMs: 0,
      askAgainAtMs: 0,
      atOnce: FIRST_AT_ONCE,
      crowdedAtMs: 0,
      addresses: new RecentAddresses(),
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

  /** Whether all partitions were asked, and none has a job. */
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
    const [each, nowMs] = [this.#slotsOfAddress(), this.#now()];
    return (
      this.#rotate(({ state }) => state === 'unknown') ??
      this.#poorest((partition) => partition.active < this.#shareOf(partition, nowMs, each)) ??
      // The others can't use their shares now.
      this.#poorest((partition) => !isCrowded(partition, nowMs))
    );
  }

  /**
   * Reserves slots for the jobs to be taken from a partition now: an even share while other partitions are to be asked
   * too. Returns the number of slots.
   */
  reserve(partition: Partition): number {
    const isToAsk = (other: Partition) => other !== partition && other.state === 'unknown' && other.taking === 0;
    const areOthersToAsk = this.#maybeMarked.length > 0 || this.all.some(isToAsk);
    const share = areOthersToAsk ? this.#evenShare() : this.#shareOf(partition);
    this.#reserve(partition, Math.max(1, Math.min(partition.atOnce, this.room(), share - partition.active)));
    return partition.taking;
  }

  /**
   * To be called when the marker of `partition` came: it has jobs. The others in `waitedFor` were empty until then, and
   * may have markers by now.
   */
  markerCame(partition: Partition, waitedFor: readonly Partition[]): void {
    partition.state = 'unknown';
    this.#maybeMarked = waitedFor.filter((other) => other !== partition);
  }

  /**
   * Reserves up to `maxJobs` slots for the other partitions that may have markers, once after a marker came. `isSure`:
   * whether a partition's lease is sure. To be called after `reserve` for the partition whose marker came.
   */
  reserveMarked(maxJobs: number, isSure: (partition: Partition) => boolean): readonly Partition[] {
    if (this.#maybeMarked.length === 0) return NONE;
    const marked = this.#maybeMarked.filter((one) => one.state === 'empty' && one.taking === 0 && isSure(one));
    this.#maybeMarked = [];
    const limit = Math.floor(Math.min(this.room(), maxJobs) / marked.length);
    if (limit < 1) return NONE;
    for (const one of marked) this.#reserve(one, Math.min(this.#evenShare(), limit));
    return marked;
  }

  /**
   * Whether the script that ends a job also takes the next one of the same partition. It does not if the partition has
   * more than its share of slots, if it could not be asked or is empty, or if another one needs the slot: it is to be
   * asked, or has jobs and fewer slots for each of its addresses.
   */
  mayTakeNext(partition: Partition): boolean {
    if (partition.state === 'failed' || (partition.state === 'empty' && this.hasRoom())) return false;
    if (this.all.length === 1) return true;
    const [each, nowMs] = [this.#slotsOfAddress(), this.#now()];
    if (partition.active > this.#shareOf(partition, nowMs, each)) return false;
    return !this.#givesUpFor(partition, nowMs, each);
  }

  /** Asking a partition failed: frees its reserved slots; it is not asked before `mayBeAskedAgain`. */
  couldNotAsk(partition: Partition): void {
    partition.state = 'failed';
    partition.taking = 0;
  }

  mayBeAskedAgain(partition: Partition): void {
    if (partition.state === 'failed') partition.state = 'unknown';
  }

  /** The partition had no job; the next one is due at this time (undefined: there is none). */
  foundEmpty(partition: Partition, dueAtMs: number | undefined): void {
    partition.state = 'empty';
    partition.atOnce = FIRST_AT_ONCE;
    this.#askAgain(partition, dueAtMs);
  }

  /** The partition had as many jobs as were to be taken. */
  tookAll(partition: Partition): void {
    partition.atOnce = Math.min(MAX_AT_ONCE, 2 * partition.atOnce);
  }

  /** One of its jobs was parked, and a slot will soon be free: for a moment the partition gets only its even share. */
  foundCrowded(partition: Partition): void {
    partition.crowdedAtMs = this.#now();
  }

  /** A check found that the next job of a partition is due at this time (undefined: there is none). */
  looked(partition: Partition, dueAtMs: number | undefined): void {
    if (partition.state !== 'empty') return;
    if (dueAtMs !== undefined && dueAtMs <= this.#now()) partition.state = 'unknown';
    else this.#askAgain(partition, dueAtMs);
  }

  /** How long an empty partition need not be asked again, in milliseconds; 0 if it is to be asked now. */
  restMs({ askAgainAtMs }: Partition): number {
    const leftMs = askAgainAtMs - this.#now();
    // It is never set further ahead than `ASK_AGAIN_MS`, so the clock was set back.
    return leftMs > ASK_AGAIN_MS ? 0 : Math.max(0, leftMs);
  }

  #reserve(partition: Partition, slots: number): void {
    partition.taking = slots;
    partition.owed = 0;
    partition.reservedAtMs = this.#now();
  }

  #askAgain(partition: Partition, dueAtMs = Number.POSITIVE_INFINITY): void {
    partition.askAgainAtMs = Math.min(dueAtMs, this.#now() + ASK_AGAIN_MS);
  }

  #evenShare(): number {
    return Math.ceil(this.#usable / this.all.length);
  }

  /** The slots for each address of the partitions that have jobs or may have some; a fraction. */
  #slotsOfAddress(): number {
    let count = 0;
    for (const { state, addresses } of this.all) if (state === 'busy' || state === 'unknown') count += addresses.count;
    return this.#usable / Math.max(1, count);
  }

  /** The slots that a partition may have. `each` spares a caller that asks for several the calculation. */
  #shareOf(partition: Partition, nowMs = this.#now(), each = this.#slotsOfAddress()): number {
    if (isCrowded(partition, nowMs)) return this.#evenShare();
    return Math.min(this.#usable, Math.ceil(each * partition.addresses.count));
  }

  /**
   * Whether the slot of a partition's job that ends goes to another one. It does if that one is to be asked; or, where
   * no slot is free, if it has jobs and less than its share, and would be poorer with the slot (`wealthWith`) than this
   * one is (or not wealthier, once this one has had the odd slot for `ODD_SLOT_MS`). The other one is owed the slot, so
   * that many jobs that end at once don't give up more than it lacks.
   */
  #givesUpFor(partition: Partition, nowMs: number, each: number): boolean {
    const wealth = wealthWith(partition.active, partition);
    const keepsOdd = !isOver(partition.reservedAtMs, ODD_SLOT_MS, nowMs);
    const isFull = !this.hasRoom();
    const poorer = this.all.find((other) => {
      if (other === partition || other.taking > 0) return false;
      if (isOver(other.owedAtMs, GIVEN_UP_MS, nowMs)) other.owed = 0;
      if (other.state === 'unknown') return other.owed === 0;
      const slots = other.active + other.owed;
      if (!isFull || other.state !== 'busy' || slots >= this.#shareOf(other, nowMs, each)) return false;
      const others = wealthWith(slots + 1, other);
      return keepsOdd ? others < wealth : others <= wealth;
    });
    if (!poorer) return false;
    poorer.owed += 1;
    poorer.owedAtMs = nowMs;
    return true;
  }

  /** Of the partitions with jobs that fit, the one that would be the poorest with one more slot, in turn. */
  #poorest(fits: (partition: Partition) => boolean): Partition | undefined {
    const wealth = (one: Partition) => wealthWith(one.active + 1, one);
    const isMeant = (one: Partition) => one.state === 'busy' && fits(one);
    let least = Number.POSITIVE_INFINITY;
    for (const one of this.all) if (one.taking === 0 && isMeant(one)) least = Math.min(least, wealth(one));
    return this.#rotate((one) => wealth(one) === least && isMeant(one));
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

/**
 * How wealthy a partition is with so many slots: their number for each of its addresses. The first slot counts nothing,
 * so that none is without one while another has two.
 */
function wealthWith(slots: number, { addresses }: Partition): number {
  return slots <= 1 ? 0 : slots / addresses.count;
}

function isCrowded({ crowdedAtMs }: Partition, nowMs: number): boolean {
  return !isOver(crowdedAtMs, CROWDED_MS, nowMs);
}

/** Whether a time that began then is over. It is too if the clock has been set back since. */
function isOver(beganAtMs: number, lastsMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - beganAtMs) >= lastsMs;
}
