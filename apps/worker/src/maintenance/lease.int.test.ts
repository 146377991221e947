/** The maintenance lease: one process per partition, and a process whose duty keeps failing lets another one try. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MINUTE_MS } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { openStore, type Store } from '@posthorn/store';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { createLease } from './lease.ts';

let store: Store;
let stop: () => Promise<void>;
let elapsedMs: number;

beforeEach(async () => {
  elapsedMs = 0;
  const onError = (error: Error) => {
    throw error;
  };
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: testPrefix(), PARTITIONS: 2, RETENTION: MINUTE_MS };
  const storage = openStore(settings, { onError });
  await storage.start();
  store = storage.store;
  stop = async () => {
    for (const key of await store.redis.keys(`${store.prefix}:*`)) await store.redis.del(key);
    await storage.stop();
  };
});
afterEach(() => stop());

const leaseOf = (holder: string) =>
  createLease({
    store,
    logger: createLogger({ app: 'test', level: 'silent' }),
    partitions: [0, 1],
    holder,
    duties: ['prune', 'expire'],
    elapsedMs: () => elapsedMs,
  });
type Lease = ReturnType<typeof leaseOf>;
const heldBy = (lease: Lease) => [0, 1].filter(lease.holds);

describe('the maintenance lease', () => {
  it('is held by one process, and by the next one once it is released', async () => {
    const [first, second] = [leaseOf('first'), leaseOf('second')];
    await first.renew();
    // However slow this machine is, the lease does not expire in Redis before the second process asks for it.
    for (const key of await store.redis.keys(`${store.prefix}:*:housekeeper`)) await store.redis.persist(key);
    await second.renew();
    expect([heldBy(first), heldBy(second)]).toEqual([[0, 1], []]);
    await first.release();
    await second.renew();
    expect([heldBy(first), heldBy(second)]).toEqual([[], [0, 1]]);
  });
  it('ends in the process after 5 s without a renewal, as it does in Redis', async () => {
    const lease = leaseOf('first');
    await lease.renew();
    elapsedMs += 4_999;
    expect(heldBy(lease)).toEqual([0, 1]);
    elapsedMs += 1;
    expect(heldBy(lease)).toEqual([]);
    await lease.renew();
    expect(heldBy(lease)).toEqual([0, 1]);
  });
  it('of a partition in which a duty has not succeeded for 5 minutes is handed over; the others are kept', async () => {
    const [first, second] = [leaseOf('first'), leaseOf('second')];
    const minutes = async (count: number) => {
      for (let i = 0; i < count * 60; i += 4) {
        elapsedMs += 4_000;
        await first.renew();
        for (const partition of [0, 1]) first.succeeded('prune', partition);
        first.succeeded('expire', 1);
      }
    };
    await first.renew();
    await minutes(5);
    expect(heldBy(first)).toEqual([0, 1]);
    elapsedMs += 4_000;
    await first.renew();
    expect(heldBy(first)).toEqual([1]);
    elapsedMs += 500;
    await first.renew();
    expect(heldBy(first)).toEqual([1]);
    await second.renew();
    elapsedMs += 1_500;
    await first.renew();
    expect([heldBy(first), heldBy(second)]).toEqual([[1], [0]]);
  });
  it('comes back to a process that found no other one to hand it over to', async () => {
    const lease = leaseOf('first');
    await lease.renew();
    for (let i = 0; i < 76; i++) {
      elapsedMs += 4_000;
      await lease.renew();
    }
    expect(heldBy(lease)).toEqual([]);
    elapsedMs += 1_500;
    await lease.renew();
    expect(heldBy(lease)).toEqual([0, 1]);
  });
});
