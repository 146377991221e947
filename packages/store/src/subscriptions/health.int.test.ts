/** The health of addresses, as the script that adds workers' counts keeps it, and the notices that come with it. */
import { describe, expect, it } from '@jest/globals';
import { addFailure, MINUTE_MS, newAttemptRun, partitionOf } from '@posthorn/core';
import {
  addCounts,
  changeSubscription,
  countFailingSince,
  countProblems,
  deleteSubscription,
  listFailing,
  loadSubscriptions,
  oldestPause,
  readHealth,
  readP99,
  waitingNotices,
} from '../index.ts';
import { prefixOfSubscription, subscriptionKey } from '../keys.ts';
import { attempt, deliver, failure, report, store, subscribe, time } from '../test-deliveries.ts';
import { countFailing } from './health.ts';

const healthOf = async ({ id }: { id: string }) => (await readHealth(store, [id], time.nowMs))[0]!;
const noticesOf = async ({ id }: { id: string }) =>
  (await waitingNotices(store, partitionOf(id, store.partitions), 100, {})).map(({ type, reason, sinceMs }) => ({
    type,
    reason,
    sinceMs,
  }));

describe('the health of an address', () => {
  it('is unknown before its first attempt, and healthy while attempts succeed', async () => {
    const one = await subscribe();
    expect(await healthOf(one)).toMatchObject({ state: 'unknown', recent: { attempts: 0 }, lastSucceededAtMs: null });
    await report(one, '..x.');
    expect(await healthOf(one)).toMatchObject({
      state: 'healthy',
      failedInARow: 0,
      recent: { attempts: 4, succeeded: 3 },
      lastSucceededAtMs: time.nowMs,
      error: { label: '500', count: 1 },
    });
    expect(await noticesOf(one)).toEqual([]);
  });
  it('is failing from the 10th failure in a row on, over any number of reports, since the first of them', async () => {
    const one = await subscribe();
    await report(one, '....................');
    const firstMs = time.nowMs + 10;
    await report(one, 'xxxx');
    time.nowMs += 3 * 60 * MINUTE_MS;
    await report(one, 'xxxxt');
    expect(await healthOf(one)).toMatchObject({ state: 'healthy', failedInARow: 9, failingSinceMs: null });
    await report(one, 't');
    expect(await healthOf(one)).toMatchObject({
      state: 'failing',
      failingSinceMs: firstMs,
      failedInARow: 10,
      recent: { attempts: 6, succeeded: 0 },
      error: { label: '500', count: 8, sinceMs: firstMs, deliveryId: 'dlv_1' },
    });
    await report(one, 'xx');
    expect(await noticesOf(one)).toEqual([{ type: 'subscription.failing', reason: '500', sinceMs: firstMs }]);
    expect(await listFailing(store, 10)).toEqual([{ subscriptionId: one.id, sinceMs: firstMs }]);
    const [key] = await store.redis.keys(`${store.prefix}:*:health:*`);
    expect(await store.redis.pttl(key!)).toBe(-1);
  });
  it('is not failing any more once its health was moved away and attempts succeed', async () => {
    const one = await subscribe();
    await report(one, 'xxxxxxxxxx');
    const [key] = await store.redis.keys(`${store.prefix}:*:health:*`);
    await store.redis.rename(key!, `${key}:moved`);
    await report(one, '.');
    expect([await healthOf(one), await countFailing(store)]).toMatchObject([{ state: 'healthy' }, 0]);
  });
  it('counts no failures in a row from before a success that another worker reported earlier', async () => {
    const one = await subscribe();
    await report(one, '.');
    const successAtMs = time.nowMs;
    time.nowMs -= 900;
    await report(one, 'xxxx');
    expect(await healthOf(one)).toMatchObject({ failedInARow: 0, lastSucceededAtMs: successAtMs });
    time.nowMs += 2_000;
    await report(one, 'xx');
    expect(await healthOf(one)).toMatchObject({ failedInARow: 2 });
    time.nowMs -= 2_000;
    await report(one, '.');
    expect(await healthOf(one)).toMatchObject({ lastSucceededAtMs: successAtMs });
  });
  it('is failing with a notice also after the clock of a worker was hours ahead', async () => {
    const one = await subscribe();
    time.nowMs += 600 * MINUTE_MS;
    await report(one, '.xxxxxxxxxx');
    await report(one, '..........');
    expect(await noticesOf(one)).toMatchObject([{ type: 'subscription.failing' }, { type: 'subscription.recovered' }]);
    time.nowMs -= 600 * MINUTE_MS;
    await report(one, 'xxxxxxxxxx');
    expect(await healthOf(one)).toMatchObject({ state: 'failing', failedInARow: 10 });
    expect(await noticesOf(one)).toHaveLength(3);
    await report(one, '.');
    expect(await healthOf(one)).toMatchObject({ failedInARow: 0, lastSucceededAtMs: time.nowMs });
  });
  it('is failing if fewer than half of at least 10 attempts of the last 15 minutes succeeded', async () => {
    const [half, fewer, old] = [await subscribe(), await subscribe(), await subscribe()];
    await report(half, 'x.x.x.x.x.');
    await report(fewer, 'x.x.x.x.xx');
    expect([(await healthOf(half)).state, (await healthOf(fewer)).state]).toEqual(['healthy', 'failing']);
    await report(old, 'xxxxx');
    time.nowMs += 15 * MINUTE_MS;
    await report(old, '.x.x.');
    expect(await healthOf(old)).toMatchObject({ state: 'healthy', recent: { attempts: 5, succeeded: 3 } });
  });
  it('ends a failing period with 10 successes in a row, whatever the rate', async () => {
    const one = await subscribe();
    await report(one, 'x'.repeat(100));
    await report(one, '.........');
    expect(await healthOf(one)).toMatchObject({ state: 'failing', failedInARow: 0 });
    await report(one, '.');
    expect(await healthOf(one)).toMatchObject({ state: 'healthy', failingSinceMs: null, error: null });
    expect((await noticesOf(one)).map(({ type }) => type)).toEqual(['subscription.failing', 'subscription.recovered']);
    expect(await countFailing(store)).toBe(0);
    const [key] = await store.redis.keys(`${store.prefix}:*:health:*`);
    expect(await store.redis.pttl(key!)).toBeGreaterThan(0);
  });
  it('begins no failing period because of failures before the last one ended', async () => {
    const one = await subscribe();
    await report(one, 'x'.repeat(100));
    await report(one, '..........');
    time.nowMs += MINUTE_MS;
    for (const attempts of ['..........', 'x', '.', 'x', '.']) {
      await report(one, attempts);
      expect((await healthOf(one)).state).toBe('healthy');
    }
    expect((await healthOf(one)).recent).toEqual({ attempts: 124, succeeded: 22 });
    await report(one, '.xxxxxxxxx.xxxxx');
    expect((await healthOf(one)).state).toBe('failing');
  });
  it('ends a failing period with the first success of an address that is attempted rarely', async () => {
    const one = await subscribe();
    await report(one, 'xxxxxxxxxx');
    time.nowMs += 60 * MINUTE_MS;
    await report(one, '.');
    expect((await healthOf(one)).state).toBe('healthy');
  });
  it('does not end it with one success among failures, however many succeeded before', async () => {
    const one = await subscribe();
    await report(one, '.'.repeat(1_000));
    time.nowMs += MINUTE_MS;
    await report(one, 'xxxxxxxxxx');
    await report(one, '.');
    expect((await healthOf(one)).state).toBe('failing');
  });
  it('sends a pair of notices every 5 minutes at most, and never an end without its beginning', async () => {
    const one = await subscribe();
    for (let i = 0; i < 3; i++) {
      await report(one, 'xxxxxxxxxx');
      await report(one, '..........');
    }
    await report(one, 'xxxxxxxxxx');
    const types = async () => (await noticesOf(one)).map(({ type }) => type);
    expect(await types()).toEqual(['subscription.failing', 'subscription.recovered']);
    time.nowMs += 5 * MINUTE_MS;
    await report(one, 'x');
    expect(await types()).toEqual(['subscription.failing', 'subscription.recovered', 'subscription.failing']);
  });
  it('keeps at most 20 kinds of errors, the most frequent ones', async () => {
    const one = await subscribe();
    const run = () => ({ ...newAttemptRun(), url: one.url, totalMs: 0, longBuckets: new Map() });
    for (let from = 0; from < 60; from += 20) {
      const counts = run();
      for (let code = from; code < from + 20; code++)
        addFailure(counts, { label: `${500 + code}`, sinceMs: time.nowMs, deliveryId: 'd', attemptNumber: 1 });
      addFailure(counts, { label: '500', sinceMs: time.nowMs, deliveryId: 'd', attemptNumber: 1 });
      const addresses = new Map([[one.id, counts]]);
      const all = { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses };
      await addCounts(store, all, time.nowMs);
    }
    const [key] = await store.redis.keys(`${store.prefix}:*:health:*`);
    expect(JSON.parse((await store.redis.hget(key!, 'e'))!)).toHaveLength(20);
    expect((await healthOf(one)).error).toMatchObject({ label: '500', count: 2 });
  });
  it('is forgotten with a new url and with the subscription, and late counts do not bring it back', async () => {
    const [changed, deleted] = [await subscribe(), await subscribe()];
    for (const one of [changed, deleted]) await report(one, 'xxxxxxxxxx');
    await changeSubscription(store, changed.id, (now) => ({ ...now, description: 'the same url' }));
    expect(await countProblems(store)).toBe(2);
    await changeSubscription(store, changed.id, (now) => ({ ...now, url: 'https://example.org/' }));
    await deleteSubscription(store, deleted.id, time.nowMs, { operator: 'o' });
    for (const one of [changed, deleted]) await report(one, 'xxxxxxxxxx');
    for (const one of [changed, deleted]) expect((await healthOf(one)).state).toBe('unknown');
    expect(await store.redis.keys(`${store.prefix}:*:failing`)).toEqual([]);
  });
  it('counts as newly failing only while its failing period is young', async () => {
    const one = await subscribe();
    await report(one, 'xxxxxxxxxx');
    const sinceMs = (await healthOf(one)).failingSinceMs!;
    expect(await countFailingSince(store, sinceMs)).toBe(1);
    expect(await countFailingSince(store, sinceMs + 1)).toBe(0);
    expect(await countFailing(store)).toBe(1);
  });
  it('counts an address that is failing and paused as one problem', async () => {
    const [both] = [await subscribe(), await subscribe(), await subscribe({ status: 'paused' })];
    await report(both, 'xxxxxxxxxx');
    await changeSubscription(store, both.id, (now) => ({ ...now, status: 'paused' }));
    expect(await countProblems(store)).toBe(2);
    expect((await healthOf(both)).state).toBe('failing');
  });
});

it('the oldest pause is that of the address that was paused first, not of the one that was created first', async () => {
  expect(await oldestPause(store)).toBeUndefined();
  const [first, second] = [await subscribe(), await subscribe()];
  const pause = async ({ id }: { id: string }) => {
    time.nowMs += MINUTE_MS;
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused', updatedAtMs: time.nowMs }));
    const { pausedAtMs } = (await loadSubscriptions(store, [id]))[0]!;
    return pausedAtMs;
  };
  const pausedAtMs = await pause(second);
  expect(await pause(first)).toBe(time.nowMs);
  expect(pausedAtMs).toBe(time.nowMs - MINUTE_MS);
  expect(await oldestPause(store)).toBe(pausedAtMs);
  const key = subscriptionKey(prefixOfSubscription(store, second.id), second.id);
  await store.redis.del(key);
  await store.redis.set(key, 'wrong');
  expect(await oldestPause(store)).toBe(time.nowMs);
});

it('the slowest responses of an address are known from 100 attempts on', async () => {
  const one = await subscribe();
  await report(one, '.'.repeat(97), new Map([[50, 2]]));
  expect(await readP99(store, one.id, time.nowMs)).toBeNull();
  await report(one, '...');
  expect(await readP99(store, one.id, time.nowMs)).toBe(Math.round(1.2 ** 50));
  await report(one, '.'.repeat(200));
  expect(await readP99(store, one.id, time.nowMs)).toBeNull();
});

it('a notice comes at a quarter, half and three quarters of the failed deliveries that pause an address', async () => {
  const one = await subscribe();
  for (let i = 0; i < 20; i++) await attempt((await deliver([one.id]))[0]!.deliveryId, 1, failure);
  const notices = await waitingNotices(store, partitionOf(one.id, store.partitions), 100, {});
  const failures = notices.filter(({ type }) => type === 'subscription.failures');
  expect(failures.map((notice) => [notice.failures, notice.pauseAfter])).toEqual([
    [5, 20],
    [10, 20],
    [15, 20],
  ]);
});
