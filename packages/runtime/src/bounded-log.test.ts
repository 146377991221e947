/** How many lines of one kind are written. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { boundedLog } from './bounded-log.ts';

afterEach(() => {
  jest.useRealTimers();
});

it('writes the first five lines of a second, and how many more there were', () => {
  jest.useFakeTimers();
  const lines: object[] = [];
  const log = boundedLog((fields) => lines.push(fields));
  for (let id = 0; id < 100; id++) log({ id });
  expect(lines).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }]);
  jest.advanceTimersByTime(1_000);
  log({ id: 100 });
  expect(lines.slice(5)).toEqual([{ suppressed: 95 }, { id: 100 }]);
  jest.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(7);
});
