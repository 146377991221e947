/** What is chosen at random. */
import { describe, expect, it } from '@jest/globals';
import { randomSample } from './random-sample.ts';

describe('randomSample', () => {
  it.each([
    [2, 2],
    [3, 3],
    [9, 3],
  ])('returns %d of three items at most, each once, and leaves the list as it is', (limit, count) => {
    const items = ['a', 'b', 'c'];
    const sample = randomSample(items, limit);
    expect(sample).toHaveLength(count);
    expect(new Set(sample).size).toBe(count);
    expect(items).toEqual(expect.arrayContaining(sample));
    expect(items).toEqual(['a', 'b', 'c']);
  });
});
