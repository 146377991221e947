/** How long work on many events may hold up all others. */
import { setImmediate } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { createBreaks } from './breaks.ts';

it('lets others go on after so many characters, and only then', async () => {
  let turns = 0;
  const counting = (async () => {
    for (; turns < 100; turns++) await setImmediate();
  })();
  const breaks = createBreaks();
  const turnsAfter = async (...lengths: number[]) => {
    const before = turns;
    for (const length of lengths) await breaks.before(length);
    return turns - before;
  };
  expect(await turnsAfter(100_000, 20_000, 10_000)).toBe(0);
  expect(await turnsAfter(10_000)).toBeGreaterThan(0);
  expect(await turnsAfter(200_000)).toBeGreaterThan(0);
  await counting;
});
