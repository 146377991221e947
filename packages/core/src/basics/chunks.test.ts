/** The parts of lists. */
import { describe, expect, it } from '@jest/globals';
import { chunksOf } from './chunks.ts';

describe('chunksOf', () => {
  it.each([
    [0, []],
    [2, [[0, 1]]],
    [3, [[0, 1], [2]]],
    [
      4,
      [
        [0, 1],
        [2, 3],
      ],
    ],
  ])('divides %d items into parts of two', (count, parts) => {
    const items = Array.from({ length: count }, (_, i) => i);
    expect([...chunksOf(items, 2)]).toEqual(parts);
  });
});
