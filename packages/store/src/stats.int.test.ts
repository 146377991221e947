/** The statistics of addresses, from what workers counted to the rankings. */
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS, newAttemptRun } from '@posthorn/core';
import { addCounts, deleteSubscription, rankAddresses, readAddressAttempts, readHealth } from './index.ts';
import { healthKey, partitionPrefix } from './keys.ts';
import { store, subscribe, subscriptionIdIn } from './test-deliveries.ts';

const nowMs = Date.now();

describe('the statistics of addresses', () => {
  type Sums = { succeeded: number; failed: number; totalMs: number };
  const ranked = async () =>
    (await rankAddresses(store, nowMs, [])).failing.map(({ subscriptionId }) => subscriptionId);
  const counts = (addresses: [string, Sums][]) => ({
    succeeded: 0,
    failed: 0,
    attemptBuckets: new Map(),
    arrivalBuckets: new Map(),
    addresses: new Map(
      addresses.map(([id, address]) => [id, { ...newAttemptRun(), url: '', longBuckets: new Map(), ...address }]),
    ),
  });
  it('add up, rank failing and slow addresses, and expire', async () => {
    const [a, b, c] = [subscriptionIdIn(0), subscriptionIdIn(0), subscriptionIdIn(0)];
    for (const id of [a, b, c]) await subscribe({ id });
    await addCounts(store, counts([[a, { succeeded: 3, failed: 1, totalMs: 400 }]]), nowMs);
    await addCounts(store, counts([[a, { succeeded: 1, failed: 1, totalMs: 200 }]]), nowMs);
    await addCounts(store, counts([[b, { succeeded: 2, failed: 0, totalMs: 2_000 }]]), nowMs);
    await addCounts(store, counts([[c, { succeeded: 0, failed: 5, totalMs: 50 }]]), nowMs);
    expect(await readAddressAttempts(store, a, nowMs)).toMatchObject({ succeeded: 4, failed: 2, meanMs: 100 });
    const { failing, slow } = await rankAddresses(store, nowMs, []);
    expect(failing.map(({ subscriptionId, failed }) => [subscriptionId, failed])).toEqual([
      [c, 5],
      [a, 2],
    ]);
    expect(slow.map(({ subscriptionId, meanMs }) => [subscriptionId, meanMs])).toEqual([
      [b, 1_000],
      [a, 100],
      [c, 10],
    ]);
    const [slowKey] = await store.redis.keys(`${store.prefix}:*stats:slow:*`);
    // The ranking itself, since a reader may sort what it found.
    expect(await store.redis.zrange(slowKey!, '0', '-1')).toEqual([c, a, b]);
    for (const key of await store.redis.keys(`${store.prefix}:*stats:*`)) {
      expect([key, (await store.redis.pttl(key)) > 0]).toEqual([key, true]);
    }
  });
  it('rank over all partitions, and load only the first 10 of each hour', async () => {
    const ids = Array.from({ length: 60 }, (_, i) => `sub_${i}`);
    for (const id of ids) await subscribe({ id });
    const hourAgo = nowMs - HOUR_MS;
    for (const [i, id] of ids.entries()) {
      await addCounts(store, counts([[id, { succeeded: 0, failed: i + 1, totalMs: (60 - i) * (i + 1) }]]), nowMs);
      await addCounts(store, counts([[id, { succeeded: 0, failed: i + 1, totalMs: (60 - i) * (i + 1) }]]), hourAgo);
    }
    let loaded = 0;
    const hgetall = (key: string) => {
      loaded += 1;
      return store.redis.hgetall(key);
    };
    const redis: typeof store.redis = Object.create(store.redis, { hgetall: { value: hgetall } });
    const { failing, slow } = await rankAddresses({ ...store, redis }, nowMs, []);
    expect(failing.map(({ subscriptionId, failed }) => [subscriptionId, failed])).toEqual(
      ids
        .slice(-10)
        .reverse()
        .map((id, i) => [id, 2 * (60 - i)]),
    );
    expect(slow.map(({ subscriptionId, meanMs }) => [subscriptionId, meanMs])).toEqual(
      ids.slice(0, 10).map((id, i) => [id, 60 - i]),
    );
    // Each address has one record of each hour.
    expect(loaded).toBe(2 * 10 * 2);
  });
  it('are added once, also beside those of an address that another program has overwritten', async () => {
    const ids = [subscriptionIdIn(0), subscriptionIdIn(0), subscriptionIdIn(0)] as const;
    const [before, broken, after] = ids;
    for (const id of ids) await subscribe({ id, url: '' });
    await store.redis.set(healthKey(partitionPrefix(store, 0), broken), 'wrong');
    const all = counts(ids.map((id) => [id, { succeeded: 0, failed: 1, totalMs: 10 }]));
    await expect(addCounts(store, all, nowMs)).rejects.toThrow(`the attempts to ${broken}: WRONGTYPE`);
    await addCounts(store, all, nowMs);
    const failed = ids.map(async (id) => (await readAddressAttempts(store, id, nowMs)).failed);
    expect(await Promise.all(failed)).toEqual([1, 1, 1]);
    const healths = await readHealth(store, [before, after], nowMs);
    expect(healths.map(({ recent }) => recent.attempts)).toEqual([1, 1]);
  });
  it('rank no deleted subscription, also if its last attempts are counted later', async () => {
    const [{ id: deleted }, { id: other }] = [await subscribe(), await subscribe()];
    const [many, few] = [2, 1].map((failed) => ({ succeeded: 0, failed, totalMs: 10 })) as [Sums, Sums];
    const add = () => addCounts(store, counts([[deleted, many]]), nowMs);
    await addCounts(store, counts([[other, few]]), nowMs);
    await add();
    expect(await ranked()).toEqual([deleted, other]);
    await deleteSubscription(store, deleted, nowMs, { operator: 'anna' });
    expect(await ranked()).toEqual([other]);
    await add();
    expect(await ranked()).toEqual([other]);
  });
});
