/** When what comes one by one is passed on. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { together } from './together.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('what comes one by one', () => {
  it('is passed on at once after a silence, then in groups', () => {
    const groups: number[][] = [];
    const { add } = together<number>((items) => groups.push(items), 1_000);
    add(1);
    add(2);
    jest.advanceTimersByTime(0);
    expect(groups).toEqual([[1, 2]]);
    for (let item = 3; item <= 102; item++) {
      add(item);
      jest.advanceTimersByTime(10);
    }
    expect(groups.map(({ length }) => length)).toEqual([2, 100]);
    jest.advanceTimersByTime(1_000);
    add(103);
    jest.advanceTimersByTime(0);
    expect(groups.at(-1)).toEqual([103]);
  });

  it('is passed on before its time by a flush, and once', () => {
    const groups: number[][] = [];
    const { add, flush } = together<number>((items) => groups.push(items), 1_000);
    add(1);
    flush();
    flush();
    expect(groups).toEqual([[1]]);
    add(2);
    jest.advanceTimersByTime(999);
    expect(groups).toEqual([[1]]);
    jest.advanceTimersByTime(1);
    expect(groups).toEqual([[1], [2]]);
  });
});
