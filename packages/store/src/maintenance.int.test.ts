/** What the scripts keep beside deliveries: leases, workers, statistics of addresses, and what a deletion must remove. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { newAttemptRun, partitionOf } from '@posthorn/core';
import {
  addCounts,
  aliveWorkers,
  deleteSubscription,
  giveUpLease,
  holdLease,
  loadSubscriptions,
  newSubscription,
  partitionsWithWork,
  rankAddresses,
  readAddressAttempts,
  type Store,
  saveSubscription,
  sendHeartbeat,
  startErasure,
} from './index.ts';
import { partitionPrefix, workersKey, workersSeenKey } from './keys.ts';
import { openTestStore } from './test-store.ts';

let store: Store;
let close: () => Promise<void>;
const nowMs = Date.now();
beforeEach(async () => {
  ({ store, close } = await openTestStore(1));
});
afterEach(() => close());

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

describe('the partitions in which something waits', () => {
  it('are those with a deleted subscription, and all while an erasure is open', async () => {
    const { store: three, close: closeThree } = await openTestStore(3);
    expect([...(await partitionsWithWork(three))]).toEqual([]);
    const fields = { eventTypes: 'all', environment: 'both', description: '', sealedSecret: '' } as const;
    const deleted = newSubscription({ url: 'https://example.com/', ...fields }, nowMs);
    await saveSubscription(three, deleted);
    await deleteSubscription(three, deleted.id, nowMs, { operator: 'anna' });
    expect([...(await partitionsWithWork(three))]).toEqual([partitionOf(deleted.id, 3)]);
    const erasure = {
      field: 'session_id',
      environment: undefined,
      unsent: 'end',
      valueHmac: '',
      seal: () => '',
      isConfirmed: false,
    } as const;
    await startErasure(three, erasure, nowMs, { operator: 'anna' });
    expect([...(await partitionsWithWork(three))].sort()).toEqual([0, 1, 2]);
    await closeThree();
  });
});

describe('workers', () => {
  const worker = {
    id: 'w',
    host: 'h',
    pid: 1,
    version: '0',
    startedAtMs: nowMs,
    concurrency: 1,
    addressConcurrency: 1,
    inFlight: 0,
    outageSinceMs: null,
  };
  it('are alive while they send heartbeats, and are removed a minute after the last one', async () => {
    const prefix = partitionPrefix(store, 0);
    const age = (ms: number) => store.redis.zincrby(workersSeenKey(prefix), -ms, 'old');
    const alive = async () => (await aliveWorkers(store)).map(({ id }) => id);
    await sendHeartbeat(store, { ...worker, id: 'old' });
    await sendHeartbeat(store, worker);
    expect(await alive()).toEqual(['old', 'w']);
    await age(10_000);
    expect(await alive()).toEqual(['w']);
    const ages = new Map((await aliveWorkers(store, 60_000)).map(({ id, seenAgoMs }) => [id, seenAgoMs]));
    expect(ages.get('old')! - ages.get('w')!).toBeGreaterThanOrEqual(10_000);
    // As if the clock of Redis had been set back by an hour since.
    await age(-3_600_000);
    expect(await alive()).toEqual(['w']);
    await age(3_650_000);
    await sendHeartbeat(store, worker);
    expect(await store.redis.hkeys(workersKey(prefix))).toEqual(['w']);
  });
});

describe('the statistics of addresses', () => {
  const counts = (addresses: [string, { succeeded: number; failed: number; totalMs: number }][]) => ({
    succeeded: 0,
    failed: 0,
    attemptBuckets: new Map(),
    arrivalBuckets: new Map(),
    addresses: new Map(
      addresses.map(([id, address]) => [id, { ...newAttemptRun(), url: '', longBuckets: new Map(), ...address }]),
    ),
  });
  it('add up, rank failing and slow addresses, and expire', async () => {
    await addCounts(store, counts([['sub_a', { succeeded: 3, failed: 1, totalMs: 400 }]]), nowMs);
    await addCounts(store, counts([['sub_a', { succeeded: 1, failed: 1, totalMs: 200 }]]), nowMs);
    await addCounts(store, counts([['sub_b', { succeeded: 2, failed: 0, totalMs: 2_000 }]]), nowMs);
    await addCounts(store, counts([['sub_c', { succeeded: 0, failed: 5, totalMs: 50 }]]), nowMs);
    expect(await readAddressAttempts(store, 'sub_a', nowMs)).toMatchObject({ succeeded: 4, failed: 2, meanMs: 100 });
    const { failing, slow } = await rankAddresses(store, nowMs);
    expect(failing.map(({ subscriptionId, failed }) => [subscriptionId, failed])).toEqual([
      ['sub_c', 5],
      ['sub_a', 2],
    ]);
    expect(slow.map(({ subscriptionId, meanMs }) => [subscriptionId, meanMs])).toEqual([
      ['sub_b', 1_000],
      ['sub_a', 100],
      ['sub_c', 10],
    ]);
    const [slowKey] = await store.redis.keys(`${store.prefix}:*stats:slow:*`);
    // The ranking itself, since a reader may sort what it found.
    expect(await store.redis.zrange(slowKey!, '0', '-1')).toEqual(['sub_c', 'sub_a', 'sub_b']);
    for (const key of await store.redis.keys(`${store.prefix}:*stats:*`)) {
      expect([key, (await store.redis.pttl(key)) > 0]).toEqual([key, true]);
    }
  });
  it('rank over all partitions, and load only the first 10 of each hour', async () => {
    const { store: four, close: closeFour } = await openTestStore(4);
    const ids = Array.from({ length: 60 }, (_, i) => `sub_${i}`);
    const hourAgo = nowMs - 3_600_000;
    for (const [i, id] of ids.entries()) {
      await addCounts(four, counts([[id, { succeeded: 0, failed: i + 1, totalMs: (60 - i) * (i + 1) }]]), nowMs);
      await addCounts(four, counts([[id, { succeeded: 0, failed: i + 1, totalMs: (60 - i) * (i + 1) }]]), hourAgo);
    }
    let loaded = 0;
    const hgetall = (key: string) => {
      loaded += 1;
      return four.redis.hgetall(key);
    };
    const redis: typeof four.redis = Object.create(four.redis, { hgetall: { value: hgetall } });
    const { failing, slow } = await rankAddresses({ ...four, redis }, nowMs);
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
    await closeFour();
  });
});

describe('a deletion', () => {
  it('leaves nothing of the subscription and its secrets', async () => {
    const made = newSubscription(
      { url: 'https://a.example/', eventTypes: 'all', environment: 'both', description: 'd', sealedSecret: 'sealed' },
      nowMs,
    );
    await saveSubscription(store, made);
    const [key] = await store.redis.keys(`${store.prefix}:*:subscription:${made.id}`);
    expect(Object.values(await store.redis.hgetall(key!)).join()).toContain('sealed');
    await deleteSubscription(store, made.id, nowMs, { operator: 'anna' });
    expect(await loadSubscriptions(store, [made.id])).toEqual([undefined]);
    expect(await store.redis.hgetall(key!)).toEqual({ status: 'deleted', deletion: expect.any(String) });
  });
});
