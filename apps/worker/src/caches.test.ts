/** The caches of a worker: how much they keep. */
import { describe, expect, it } from '@jest/globals';
import { atMost, knownOrNew } from '@posthorn/core';
import { LRUCache } from 'lru-cache';

describe('a cache', () => {
  it('keeps at most as many items as it may, those that were used last', () => {
    const cache = new LRUCache<string, { name: string }>(atMost(3));
    const use = (name: string) => knownOrNew(cache, name, () => ({ name }));
    for (const name of ['a', 'b', 'c', 'a', 'd', 'a', 'e']) use(name);
    expect([...cache.keys()]).toEqual(['e', 'a', 'd']);
    for (let i = 0; i < 1_000; i++) use(`another ${i}`);
    expect(cache.size).toBe(3);
  });
  it('takes no memory for items that it does not have', () => {
    const usedBytes = () => process.memoryUsage().heapUsed;
    const before = usedBytes();
    const caches = Array.from({ length: 100 }, () => new LRUCache<string, object>(atMost(10_000)));
    // With tables for 10,000 items each it would be 24 MB.
    expect(usedBytes() - before).toBeLessThan(2e6);
    expect(caches).toHaveLength(100);
  });
});
