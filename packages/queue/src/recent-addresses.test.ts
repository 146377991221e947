/** How many addresses a partition's latest jobs are for. */
import { describe, expect, it } from '@jest/globals';
import { RecentAddresses } from './recent-addresses.ts';

describe('recent addresses', () => {
  it('counts those of the latest jobs, from one to ten', () => {
    const addresses = new RecentAddresses();
    expect(addresses.count).toBe(1);
    const counts = Array.from({ length: 30 }, (_, i) => {
      addresses.took(`address ${i % 15}`);
      return addresses.count;
    });
    expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, ...Array(21).fill(10)]);
  });

  it('forgets one after 64 further jobs for others', () => {
    const addresses = new RecentAddresses();
    addresses.took('first');
    for (let i = 0; i < 64; i++) addresses.took('second');
    expect(addresses.count).toBe(2);
    addresses.took('second');
    expect(addresses.count).toBe(1);
    addresses.took('first');
    expect(addresses.count).toBe(2);
  });
});
