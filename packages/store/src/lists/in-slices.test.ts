/** Long lists, sorted, changed and walked in slices. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { changeInSlices, filterInSlices, sortInSlices, visitInSlices, walkInSlices } from './in-slices.ts';

const compare = (a: number, b: number) => a - b;
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('a long list', () => {
  it('is sorted and filtered', async () => {
    const shuffled = upTo(20_011).map((i) => (i * 7_919) % 20_011);
    expect(await sortInSlices(shuffled, compare)).toEqual(upTo(20_011));
    expect(await filterInSlices(upTo(20_011), (i) => i % 4_001 === 0)).toEqual([
      0, 4_001, 8_002, 12_003, 16_004, 20_005,
    ]);
  });
  it.each([
    ['few', 100],
    ['many', 5_000],
  ])('stays sorted while %s items are removed and added', async (_, count) => {
    const removed = upTo(count).map((i) => i * 2);
    const added = upTo(count)
      .map((i) => 19_999 - i + 0.5)
      .concat(-1);
    const expected = [...upTo(20_000).filter((i) => !removed.includes(i)), ...added].sort(compare);
    expect(await changeInSlices(upTo(20_000), removed, added, compare)).toEqual(expected);
    expect(await changeInSlices([], [], added, compare)).toEqual(added.toSorted(compare));
  });
  it('lets others run between two slices', async () => {
    let turns = 0;
    let isOver = false;
    const others = async () => {
      for (; !isOver; turns++) await nextTurn();
    };
    const running = others();
    await filterInSlices(upTo(100_000), () => true);
    isOver = true;
    await running;
    expect(turns).toBeGreaterThanOrEqual(20);
  });
});

describe('a list of items of different weights', () => {
  it('lets others run once those visited weigh as much as a slice, and only then', async () => {
    let turns = 0;
    const others = (async () => {
      for (; turns < 100; turns++) await nextTurn();
    })();
    const turnsBefore: number[] = [];
    const weights = [3_000, 600, 300, 300, 6_000];
    await visitInSlices(
      weights,
      () => turnsBefore.push(turns),
      (weight) => weight,
    );
    const [first, second, third, fourth, fifth] = turnsBefore as [number, number, number, number, number];
    expect([second, third]).toEqual([first, first]);
    expect(fourth).toBeGreaterThan(third);
    expect(fifth).toBeGreaterThan(fourth);
    await others;
  });
});

describe('a walk', () => {
  const walk = (list: number[], after: number | undefined, wanted: (i: number) => boolean, count: number) =>
    walkInSlices(() => list, after, compare, wanted, count);
  it('begins after a place, whether it exists or not, and ends with the count or the list', async () => {
    const list = upTo(9_000);
    const isHundred = (i: number) => i % 100 === 0;
    expect(await walk(list, undefined, isHundred, 2)).toEqual([0, 100]);
    expect(await walk(list, 100, isHundred, 2)).toEqual([200, 300]);
    expect(await walk(list, 8_799.5, isHundred, 5)).toEqual([8_800, 8_900]);
    expect(await walk(list, 9_000, () => true, 5)).toEqual([]);
    expect(await walk(upTo(4_000), undefined, (i) => i === 3_999, 5)).toEqual([3_999]);
  });
  it('goes on at the right place in a list that changes between two slices', async () => {
    const list = upTo(12_000);
    const walked = walk(list, undefined, (i) => i >= 7_999, 3);
    list.splice(0, 3_000);
    expect(await walked).toEqual([7_999, 8_000, 8_001]);
  });
});
