/** From which partition a consumer takes its next job. */
import { describe, expect, it } from '@jest/globals';
import { type Partition, Partitions } from './partitions.ts';

/** Takes a job from each partition that is offered, until none is: the first `busy` of them have jobs without end. */
function fill(partitions: Partitions, busy: number): number[] {
  for (let next = partitions.next(); next; next = partitions.next()) {
    if (next.index < busy) {
      next.state = 'busy';
      next.active += 1;
    } else {
      partitions.foundEmpty(next, undefined);
    }
  }
  return partitions.all.map(({ active }) => active);
}

describe('partitions', () => {
  it('shares the slots evenly among those that have jobs', () => {
    expect(fill(new Partitions(4, 12), 4)).toEqual([3, 3, 3, 3]);
    expect(fill(new Partitions(4, 12), 2)).toEqual([6, 6, 0, 0]);
    expect(fill(new Partitions(1, 12), 1)).toEqual([12]);
  });

  /** Has jobs of this many addresses taken from each partition. */
  function takeOfAddresses(partitions: Partitions, counts: readonly number[]): void {
    for (const [i, count] of counts.entries())
      for (let address = 0; address < count; address++) partitions.all[i]!.addresses.took(`${i} ${address}`);
  }

  /** Gives each partition so many jobs in flight, and further ones. */
  function setBusy(partitions: Partitions, active: readonly number[]): void {
    for (const [i, one] of partitions.all.entries()) Object.assign(one, { state: 'busy', active: active[i] });
  }

  it('shares the slots in proportion to the addresses of their latest jobs', () => {
    const partitions = new Partitions(3, 12);
    takeOfAddresses(partitions, [3, 1, 2]);
    expect(fill(partitions, 3)).toEqual([6, 2, 4]);
  });

  it('gives a slot to one that has as many, but for more addresses', () => {
    const partitions = new Partitions(2, 5);
    takeOfAddresses(partitions, [1, 2]);
    const [first, second] = partitions.all;
    setBusy(partitions, [2, 3]);
    expect([first, second].map((one) => partitions.mayTakeNext(one!))).toEqual([false, true]);
    first!.active = 1;
    expect(partitions.next()).toBe(second);
  });

  it('keeps none without a slot, however many addresses the others have', () => {
    let nowMs = 1_000_000;
    const partitions = new Partitions(3, 2, () => nowMs);
    takeOfAddresses(partitions, [10, 1, 1]);
    const [first, second, third] = partitions.all;
    setBusy(partitions, [2, 0, 0]);
    expect(partitions.mayTakeNext(first!)).toBe(false);
    first!.active = 1;
    expect(partitions.next()).toBe(second);
    partitions.reserve(second!);
    [second!.taking, second!.active] = [0, 1];
    expect(partitions.mayTakeNext(second!)).toBe(true);
    // The slot that can't be divided changes places.
    nowMs += 51;
    expect(partitions.mayTakeNext(second!)).toBe(false);
    second!.active = 0;
    expect(partitions.next()).toBe(third);
  });

  it('gives slots that others can not use to any that is not crowded', () => {
    const partitions = new Partitions(2, 12);
    takeOfAddresses(partitions, [10, 1]);
    const [first, second] = partitions.all;
    setBusy(partitions, [7, 2]);
    expect(partitions.next()).toBe(first);
    partitions.foundCrowded(first!);
    expect([partitions.next(), partitions.reserve(second!)]).toEqual([second, 1]);
    second!.taking = 0;
    partitions.foundCrowded(second!);
    second!.active = 6;
    expect(partitions.next()).toBeUndefined();
  });

  it.each([
    ['with fewer slots than partitions', 2, [1, 1, 0]],
    ['to one that gets jobs while the others use all slots', 12, [4, 7, 1]],
  ])('gives a slot to one that has jobs and fewer slots, %s', (_, concurrency, active) => {
    const partitions = new Partitions(3, concurrency);
    setBusy(partitions, active);
    const [first, , third] = partitions.all;
    expect(partitions.mayTakeNext(first!)).toBe(false);
    first!.active -= 1;
    expect(partitions.next()).toBe(third);
    third!.taking = 1;
    expect(partitions.mayTakeNext(first!)).toBe(true);
  });

  /** Partitions with jobs without end and so many in flight, whose slots were all reserved just now. */
  function busyWith(concurrency: number, active: number[], now: () => number) {
    const partitions = new Partitions(active.length, concurrency, now);
    for (const one of partitions.all) {
      partitions.reserve(one);
      one.taking = 0;
    }
    setBusy(partitions, active);
    return partitions;
  }

  it('gives up no more slots than one lacks, however many jobs end before it takes the first', () => {
    let nowMs = 1_000_000;
    const partitions = busyWith(10, [4, 4, 2], () => nowMs);
    const [first, second, third] = partitions.all;
    const ends = () => [first, second, first, second].map((one) => partitions.mayTakeNext(one!));
    expect(ends()).toEqual([false, true, true, true]);
    partitions.reserve(third!);
    [third!.taking, third!.active, first!.active] = [0, 3, 3];
    expect(ends()).toEqual([true, true, true, true]);
    // The slot that was given up was lost, perhaps because another worker had the jobs; the clock was set back since.
    Object.assign(third!, { active: 2, owed: 1, owedAtMs: nowMs + 3_600_000 });
    first!.active = 4;
    expect(ends()).toEqual([false, true, true, true]);
    // Also the odd slot may change places by now.
    nowMs += 51;
    expect(ends()).toEqual([false, false, true, true]);
  });

  it('passes on a slot that cannot be divided evenly, but not with each job', () => {
    let nowMs = 1_000_000;
    const partitions = busyWith(3, [2, 1], () => nowMs);
    const [first, second] = partitions.all;
    expect(partitions.mayTakeNext(first!)).toBe(true);
    // The clock is set back, or goes on.
    nowMs -= 3_600_000;
    expect(partitions.mayTakeNext(first!)).toBe(false);
    second!.owed = 0;
    nowMs += 3_600_050;
    expect([1, 2].map(() => partitions.mayTakeNext(first!))).toEqual([false, true]);
    first!.active -= 1;
    expect(partitions.next()).toBe(second);
    partitions.reserve(second!);
    [second!.taking, second!.active] = [0, 2];
    expect([first, second].map((one) => partitions.mayTakeNext(one!))).toEqual([true, true]);
  });

  it('counts those that may have jobs among those that share the slots', () => {
    const partitions = new Partitions(3, 12);
    const [first, second, third] = partitions.all;
    first!.state = 'busy';
    partitions.foundEmpty(third!, undefined);
    second!.taking = 1;
    expect(partitions.reserve(first!)).toBe(6);
  });

  it('asks an empty one again when its next job is due, within 5 s, and at once after the clock was set back', () => {
    let nowMs = 1_000_000;
    const partitions = new Partitions(1, 12, () => nowMs);
    const [only] = partitions.all as [Partition];
    partitions.foundEmpty(only, nowMs + 300);
    expect(partitions.restMs(only)).toBe(300);
    partitions.foundEmpty(only, nowMs + 86_400_000);
    expect(partitions.restMs(only)).toBe(5_000);
    nowMs -= 1;
    expect(partitions.restMs(only)).toBe(0);
  });

  it('uses only a share of the slots for as long as that is said', () => {
    const partitions = new Partitions(4, 20);
    partitions.use(0.3);
    expect([partitions.room(), partitions.reserve(partitions.all[0]!)]).toEqual([6, 2]);
    partitions.use(1);
    expect([partitions.room(), partitions.reserve(partitions.all[1]!)]).toEqual([18, 5]);
    const only = new Partitions(1, 1);
    only.use(0.3);
    expect(only.room()).toBe(1);
  });

  it('gives one that is crowded no more than if all had jobs, and watches the others', () => {
    const partitions = new Partitions(4, 12);
    const [first] = partitions.all;
    partitions.foundCrowded(first!);
    expect(fill(partitions, 1)).toEqual([3, 0, 0, 0]);
    expect(partitions.hasRoom()).toBe(true);
    expect(partitions.mayTakeNext(first!)).toBe(true);
    first!.active += 1;
    expect(partitions.mayTakeNext(first!)).toBe(false);
    first!.crowdedAtMs = 0;
    expect(fill(partitions, 1)).toEqual([12, 0, 0, 0]);
  });

  it('takes up to 32 jobs at once, no more than there are slots, and an even share while others are to be asked', () => {
    const one = new Partitions(1, 40);
    const [only] = one.all;
    expect([one.reserve(only!), one.inUse()]).toEqual([32, 32]);
    only!.taking = 0;
    only!.active = 35;
    expect([one.reserve(only!), one.inUse()]).toEqual([5, 40]);

    const four = new Partitions(4, 40);
    const [first, ...others] = four.all;
    expect(four.reserve(first!)).toBe(10);
    first!.taking = 0;
    for (const other of others) four.foundEmpty(other, undefined);
    expect(four.reserve(first!)).toBe(32);
    first!.taking = 0;
    four.foundCrowded(first!);
    expect(four.reserve(first!)).toBe(10);
  });

  it('takes 64 at once while a partition has as many as were to be taken, and 32 again once it was empty', () => {
    const partitions = new Partitions(1, 1_000);
    const [only] = partitions.all;
    const reserve = () => {
      const count = partitions.reserve(only!);
      only!.taking = 0;
      return count;
    };
    const sizes = Array.from({ length: 4 }, () => {
      const size = reserve();
      partitions.tookAll(only!);
      return size;
    });
    expect(sizes).toEqual([32, 64, 64, 64]);
    partitions.foundEmpty(only!, undefined);
    expect(reserve()).toBe(32);
  });

  it('offers those that were waited for with one whose marker came, once, and no more slots than are free', () => {
    const partitions = new Partitions(4, 8);
    fill(partitions, 0);
    const [first, second, third, fourth] = partitions.all;
    const isSure = (one: Partition) => one !== fourth;
    expect(partitions.reserveMarked(64, isSure)).toEqual([]);
    partitions.markerCame(first!, partitions.all);
    expect([partitions.next(), partitions.reserve(first!)]).toEqual([first, 2]);
    first!.taking = 8;
    expect(partitions.reserveMarked(64, isSure)).toEqual([]);
    first!.taking = 6;
    partitions.markerCame(first!, partitions.all);
    expect(partitions.reserveMarked(64, isSure)).toEqual([second, third]);
    expect([second, third].map((one) => one!.taking)).toEqual([1, 1]);
    for (const one of [second, third]) one!.taking = 0;
    expect(partitions.reserveMarked(64, isSure)).toEqual([]);
  });

  it('gives up one slot for each partition that is to be asked, and no more', () => {
    let nowMs = 1_000_000;
    const partitions = new Partitions(3, 6, () => nowMs);
    const [first, second, third] = partitions.all;
    for (const partition of [first, second, third]) {
      partitions.reserve(partition!);
      partition!.taking = 0;
    }
    [first!.state, first!.active] = ['busy', 6];
    for (const partition of [second, third]) partitions.foundEmpty(partition!, undefined);
    const ends = () => Array.from({ length: 3 }, () => partitions.mayTakeNext(first!));
    expect(ends()).toEqual([true, true, true]);
    // It has no more than its share from now on.
    first!.active = 2;
    partitions.looked(second!, 0);
    partitions.looked(third!, nowMs + 60_000);
    expect(partitions.all.map(({ state }) => state)).toEqual(['busy', 'unknown', 'empty']);
    expect(ends()).toEqual([false, true, true]);
    nowMs += 60_000;
    partitions.looked(third!, nowMs);
    // The slot that was given up before was lost.
    expect(ends()).toEqual([false, false, true]);
  });

  it('does not ask one that could not be asked, whose slots are free, until it may be asked again', () => {
    const partitions = new Partitions(2, 4);
    const [first, second] = partitions.all;
    partitions.foundEmpty(second!, undefined);
    partitions.reserve(first!);
    partitions.couldNotAsk(first!);
    expect([partitions.next(), partitions.room(), partitions.mayTakeNext(first!)]).toEqual([undefined, 4, false]);
    partitions.mayBeAskedAgain(first!);
    partitions.mayBeAskedAgain(second!);
    expect(partitions.all.map(({ state }) => state)).toEqual(['unknown', 'empty']);
  });

  it('lets the end of a job take the next one unless another partition is to be asked, or waits for its marker', () => {
    const partitions = new Partitions(2, 2);
    fill(partitions, 1);
    const [first, second] = partitions.all;
    expect(partitions.mayTakeNext(first!)).toBe(true);
    partitions.looked(second!, 0);
    expect(second!.state).toBe('unknown');
    expect(partitions.mayTakeNext(first!)).toBe(false);
    first!.active = 1;
    partitions.foundEmpty(first!, undefined);
    partitions.foundEmpty(second!, undefined);
    expect(partitions.mayTakeNext(first!)).toBe(false);
  });
});
