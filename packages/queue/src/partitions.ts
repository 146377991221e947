/** What a consumer knows of the partitions' queues, and from which one it takes the next job, so that none keeps all slots. */

export interface Partition {
  readonly index: number;
  /** `unknown`: it may have jobs; `busy`: it had one when last asked; `empty`: it had none. */
  state: 'unknown' | 'busy' | 'empty';
  /** The number of jobs that are being taken from it, if so many wait. */
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
const MAX_AT_ONCE = 64;

export type Partitions = ReturnType<typeof createPartitions>;

/** `concurrency`: jobs in flight at once, over all partitions. `now`: milliseconds since 1970. */
export function createPartitions(count: number, concurrency: number, now: () => number = Date.now) {
  const all = Array.from(
    { length: count },
    (_, index): Partition => ({
      index,
      state: 'unknown',
      taking: 0,
      active: 0,
      askAgainAtMs: 0,
      atOnce: FIRST_AT_ONCE,
      crowdedUntilMs: 0,
    }),
  );
  let last = 0;
  /** Slots that are being freed for partitions that may have jobs. */
  let givenUp = { slots: 0, atMs: 0 };
  const inUse = () => all.reduce((sum, { active, taking }) => sum + active + taking, 0);
  /** Slots that are not in use. */
  const room = () => Math.max(0, concurrency - inUse());
  const busyShare = () => Math.ceil(concurrency / Math.max(1, all.filter(({ state }) => state === 'busy').length));
  const evenShare = Math.ceil(concurrency / count);
  /** The slots that a partition may have. `busy` spares a caller that asks for several the calculation. */
  const shareOf = ({ crowdedUntilMs }: Partition, nowMs = now(), busy = busyShare()) =>
    nowMs < crowdedUntilMs ? evenShare : busy;
  const rotate = (fits: (partition: Partition) => boolean): Partition | undefined => {
    for (let step = 1; step <= count; step++) {
      const partition = all[(last + step) % count];
      if (!partition || partition.taking > 0 || !fits(partition)) continue;
      last = partition.index;
      return partition;
    }
    return undefined;
  };
  return {
    all: all as readonly Partition[],
    /** Slots in use. */
    inUse,
    hasRoom: () => room() > 0,
    room,
    /** The partition to take the next job from; undefined if no slot is free, or none may have a job. */
    next(): Partition | undefined {
      if (room() === 0) return undefined;
      const [share, nowMs] = [busyShare(), now()];
      return (
        rotate(({ state }) => state === 'unknown') ??
        rotate((partition) => partition.state === 'busy' && partition.active < shareOf(partition, nowMs, share))
      );
    },
    /**
     * Reserves slots for the jobs that are to be taken from a partition now: an even share while others are to be asked
     * too. Returns how many.
     */
    reserve(partition: Partition): number {
      const areOthersUnknown = all.some((other) => other !== partition && other.state === 'unknown');
      const share = areOthersUnknown ? evenShare : shareOf(partition);
      if (partition.state === 'unknown') givenUp.slots = Math.max(0, givenUp.slots - 1);
      partition.taking = Math.max(1, Math.min(partition.atOnce, room(), share - partition.active));
      return partition.taking;
    },
    /**
     * Whether the end of one of its jobs is to take the next one of the same partition: not beyond its share, not while
     * others are to be asked, and not if it was empty and its marker is waited for.
     */
    mayTakeNext(partition: Partition): boolean {
      if (partition.state === 'empty' && room() > 0) return false;
      if (count === 1) return true;
      const nowMs = now();
      if (partition.active > shareOf(partition, nowMs)) return false;
      const toAsk = all.reduce((sum, { state, taking }) => sum + Number(state === 'unknown' && taking === 0), 0);
      if (nowMs - givenUp.atMs > GIVEN_UP_MS) givenUp = { slots: 0, atMs: nowMs };
      // One slot for each of them: many jobs end at once.
      if (givenUp.slots >= toAsk) return true;
      givenUp.slots += 1;
      return false;
    },
    foundEmpty(partition: Partition, dueAtMs: number | undefined): void {
      partition.state = 'empty';
      partition.atOnce = FIRST_AT_ONCE;
      partition.askAgainAtMs = Math.min(dueAtMs ?? Number.POSITIVE_INFINITY, now() + ASK_AGAIN_MS);
    },
    /** It had as many jobs as were to be taken. */
    tookAll(partition: Partition): void {
      partition.atOnce = Math.min(MAX_AT_ONCE, 2 * partition.atOnce);
    },
    /** One of its jobs had to be parked, and a slot for it will soon be free: for a moment the partition gets only its even share. */
    foundCrowded(partition: Partition): void {
      partition.crowdedUntilMs = now() + CROWDED_MS;
    },
    /** Somebody has looked, and the next job of a partition is due then (undefined: there is none). */
    looked(partition: Partition, dueAtMs: number | undefined): void {
      if (partition.state !== 'empty') return;
      const nowMs = now();
      if (dueAtMs !== undefined && dueAtMs <= nowMs) partition.state = 'unknown';
      else partition.askAgainAtMs = Math.min(dueAtMs ?? Number.POSITIVE_INFINITY, nowMs + ASK_AGAIN_MS);
    },
  };
}
