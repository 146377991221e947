/** Leases on a real Redis. */
import { describe, expect, it } from '@jest/globals';
import { giveUpLease, holdLease } from './index.ts';
import { store } from './test-deliveries.ts';

describe('a lease', () => {
  it('has one holder, who can renew it, until it ends', async () => {
    const take = (holder: string) => holdLease(store, 'maintenance', 0, holder, 600_000);
    expect([await take('a'), await take('b'), await take('a'), await take('b')]).toEqual([true, false, true, false]);
    const [key] = await store.redis.keys(`${store.prefix}:*housekeeper`);
    expect(await store.redis.pttl(key!)).toBeGreaterThan(0);
    await giveUpLease(store, 'maintenance', 0, 'b');
    expect(await take('b')).toBe(false);
    await giveUpLease(store, 'maintenance', 0, 'a');
    expect([await take('b'), await take('a')]).toEqual([true, false]);
  });
});
