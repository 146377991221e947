/** Which failing addresses are one incident. */
import { describe, expect, it } from '@jest/globals';
import { MINUTE_MS } from './basics/time.ts';
import { findIncidents } from './incident.ts';

const at = (...minutes: number[]) =>
  minutes.map((minute) => ({ subscriptionId: `sub_${minute}`, sinceMs: minute * MINUTE_MS }));
const sizes = (...minutes: number[]) =>
  findIncidents(at(...minutes)).map(({ subscriptionIds }) => subscriptionIds.length);

describe('incidents', () => {
  it('are three or more addresses, each of which began to fail within two minutes of another', () => {
    expect(findIncidents(at(31, 1, 30, 32))).toEqual([
      { id: `inc_${30 * MINUTE_MS}`, startedAtMs: 30 * MINUTE_MS, subscriptionIds: ['sub_30', 'sub_31', 'sub_32'] },
    ]);
    expect([sizes(1, 2), sizes(1, 3, 5), sizes(1, 3, 5.1)]).toEqual([[], [3], []]);
  });
  it('last ten minutes at most, and come newest first', () => {
    expect(sizes(...Array.from({ length: 14 }, (_, i) => i))).toEqual([3, 11]);
    expect(findIncidents([])).toEqual([]);
  });
});
