/** Durations in words, at the borders between units. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@posthorn/core';
import { durationText } from './numbers.ts';

describe('a duration', () => {
  it.each([
    [0, '0 ms'],
    [-1, '0 ms'],
    [-5 * MINUTE_MS, '0 ms'],
    [0.4, '0 ms'],
    [999.4, '999 ms'],
    [999.6, '1.0 s'],
    [9_940, '9.9 s'],
    [9_960, '10 s'],
    [59_400, '59 s'],
    [59_960, '1 min'],
    [MINUTE_MS, '1 min'],
    [4 * MINUTE_MS + 12_400, '4 min 12 s'],
    [4 * MINUTE_MS + 59_960, '5 min'],
    [59 * MINUTE_MS + 59_400, '59 min 59 s'],
    [59 * MINUTE_MS + 59_900, '1 h'],
    [11 * HOUR_MS + 59 * MINUTE_MS, '11 h 59 min'],
    [23 * HOUR_MS + 59 * MINUTE_MS + 59_000, '1 d'],
    [3 * DAY_MS + 4 * HOUR_MS, '3 d 4 h'],
    [3 * DAY_MS + 23 * HOUR_MS + 59 * MINUTE_MS, '4 d'],
  ])('of %d ms is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  it('that is unknown is a dash', () => {
    expect([durationText(null), durationText(undefined)]).toEqual(['–', '–']);
  });
});
