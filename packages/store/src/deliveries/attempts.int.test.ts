/** What recording an attempt does to its delivery and to the address. */
import { describe, expect, it } from '@jest/globals';
import { eventRef, HOUR_MS, partitionOf, type Verdict } from '@posthorn/core';
import {
  addressesToRelease,
  type CreatedDelivery,
  changeSubscription,
  laneLength,
  loadSubscriptions,
  rescueJobs,
} from '../index.ts';
import { failedKey, partitionPrefix, prefixOfSubscription, queueKey } from '../keys.ts';
import {
  attempt,
  begin,
  deliver,
  event,
  failure,
  loadOne,
  loseJob,
  park,
  release,
  store,
  subscribe,
  time,
} from '../test-deliveries.ts';

describe('attempts', () => {
  it('that fail for good remove what expired from the list of their address, a hundred entries each', async () => {
    const { id } = await subscribe();
    const key = failedKey(prefixOfSubscription(store, id), id);
    const pipeline = store.redis.pipeline();
    for (let i = 0; i < 150; i++) pipeline.zadd(key, 1, `dlv_expired-${i}`);
    await pipeline.exec();
    const entries: number[] = [];
    for (let i = 0; i < 3; i++) {
      const [made] = await deliver([id]);
      await attempt(made!.deliveryId, 1, failure);
      entries.push(await store.redis.zcard(key));
    }
    expect(entries).toEqual([51, 2, 3]);
  });

  it('do not begin if their number is not known: they could not be recorded, and would be sent for ever', async () => {
    const { id } = await subscribe();
    const [{ deliveryId }] = (await deliver([id])) as [CreatedDelivery];
    for (const n of ['garbage', '', '-1', '99999999999999999999']) {
      await store.redis.hset(`${prefixOfSubscription(store, id)}:delivery:${deliveryId}`, 'n', n);
      await expect(begin({ deliveryId, generation: 0, subscriptionId: id })).rejects.toThrow(deliveryId);
    }
  });

  it('that a script can not record say which script failed, and at which line', async () => {
    const { id } = await subscribe();
    const [{ deliveryId }] = (await deliver([id])) as [CreatedDelivery];
    await store.redis.set(`${prefixOfSubscription(store, id)}:parked:${id}`, 'wrong');
    await expect(attempt(deliveryId, 1, failure)).rejects.toThrow(
      /^WRONGTYPE .* \(recordFailure: local parked = call\('ZCARD', /,
    );
  });

  it('are recorded once each', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    const retry: Verdict = { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 };
    expect((await attempt(deliveryId, 1, retry)).kind).toBe('recorded');
    expect((await attempt(deliveryId, 1, { kind: 'succeeded' })).kind).toBe('repeated');
    expect(await loadOne(deliveryId)).toMatchObject({
      status: 'waiting_for_retry',
      attemptCount: 1,
      nextAttemptAtMs: time.nowMs + 60_000,
    });
    expect((await attempt(deliveryId, 2, { kind: 'succeeded' })).kind).toBe('recorded');
    expect((await attempt(deliveryId, 3, failure)).kind).toBe('over');
    expect(await loadOne(deliveryId)).toMatchObject({
      status: 'succeeded',
      attemptCount: 2,
      nextAttemptAtMs: null,
      attempts: [
        { number: 1, error: 'timeout', statusCode: null },
        { number: 2, error: null, statusCode: 200 },
      ],
    });
  });
  it('do not begin for a job that is early or of an older generation', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    const job = { deliveryId, generation: 0, subscriptionId: subscription.id };
    expect(await begin(job, time.nowMs)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs + 60_000 });
    expect(await begin(job, time.nowMs + 60_000)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin({ ...job, generation: 1 }, time.nowMs + 60_000)).toEqual({ kind: 'superseded' });
  });
});

describe('pause', () => {
  it('pauses the address at the 20th consecutive failed delivery', async () => {
    const subscription = await subscribe();
    for (let i = 1; i <= 21; i++) {
      const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
      const recorded = await attempt(deliveryId, 1, failure);
      expect([i, recorded.paused]).toEqual([i, i === 20]);
      const [now] = await loadSubscriptions(store, [subscription.id]);
      expect([i, now?.status, now?.consecutiveFailures]).toEqual([i, i >= 20 ? 'paused' : 'active', Math.min(i, 20)]);
    }
    const [now] = await loadSubscriptions(store, [subscription.id]);
    expect(now).toMatchObject({ statusReason: 'consecutive_failures', consecutiveFailures: 20 });
  });
  it('resets the count at a success', async () => {
    const subscription = await subscribe();
    for (let i = 1; i <= 40; i++) {
      const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
      const recorded = await attempt(deliveryId, 1, i % 20 === 0 ? { kind: 'succeeded' } : failure);
      expect(recorded.paused).toBe(false);
    }
    expect((await loadSubscriptions(store, [subscription.id]))[0]).toMatchObject({
      status: 'active',
      consecutiveFailures: 0,
    });
  });
  it('pauses once if many workers record failures at once', async () => {
    const subscription = await subscribe();
    const made = await Promise.all(Array.from({ length: 40 }, () => deliver([subscription.id])));
    const recorded = await Promise.all(made.map(([delivery]) => attempt(delivery!.deliveryId, 1, failure)));
    expect(recorded.filter(({ paused }) => paused)).toHaveLength(1);
    expect((await loadSubscriptions(store, [subscription.id]))[0]?.consecutiveFailures).toBe(20);
  });
  it('holds a due retry with its attempts; after a resume it continues under a new generation', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 1 });
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    time.nowMs += 1_000;
    expect(await begin({ deliveryId, generation: 0, subscriptionId: subscription.id }, time.nowMs)).toEqual({
      kind: 'held',
    });
    expect(await loadOne(deliveryId)).toMatchObject({ status: 'held', attemptCount: 1, nextAttemptAtMs: null });
    expect(await release('held', subscription.id, 10)).toEqual([]);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'active', consecutiveFailures: 0 }));
    const partition = partitionOf(subscription.id, store.partitions);
    expect(await addressesToRelease(store, partition, 'held')).toEqual([subscription.id]);
    const released = await release('held', subscription.id, 10);
    expect(released).toMatchObject([{ deliveryId, generation: time.nowMs + 1, isRetry: true }]);
    expect(await addressesToRelease(store, partition, 'held')).toEqual([]);
    expect((await loadOne(deliveryId)).status).toBe('waiting_for_retry');
    expect(await begin({ deliveryId, generation: 0, subscriptionId: subscription.id }, time.nowMs)).toEqual({
      kind: 'superseded',
    });
    expect(
      await begin({ deliveryId, generation: released[0]!.generation, subscriptionId: subscription.id }, time.nowMs),
    ).toMatchObject({
      kind: 'attempt',
      attemptNumber: 2,
    });
  });
});

it.each([
  ['succeeded', { kind: 'succeeded' }],
  ['waiting_for_retry', { kind: 'retry', nextAttemptAtMs: Date.now() + HOUR_MS }],
  ['failed', failure],
] as const)(
  'an attempt ends the wait of a delivery that was held while it was in flight: %s',
  async (status, verdict) => {
    const { id: subscriptionId } = await subscribe();
    const [{ deliveryId }] = (await deliver([subscriptionId])) as [CreatedDelivery];
    await changeSubscription(store, subscriptionId, (now) => ({ ...now, status: 'paused' }));
    expect((await begin({ deliveryId, generation: 0, subscriptionId })).kind).toBe('held');
    expect(await laneLength(store, 'held', subscriptionId)).toBe(1);
    await attempt(deliveryId, 1, verdict);
    expect((await loadOne(deliveryId)).status).toBe(status);
    expect(await laneLength(store, 'held', subscriptionId)).toBe(0);
  },
);

describe('lost jobs', () => {
  it('are found for deliveries that are not parked, and get a new generation once', async () => {
    const subscription = await subscribe();
    const [lost] = await deliver([subscription.id]);
    await loseJob(lost!.deliveryId);
    const parkedEvent = event();
    const [parked] = await deliver([subscription.id], parkedEvent);
    await park({
      deliveryId: parked!.deliveryId,
      generation: 0,
      subscriptionId: subscription.id,
      event: eventRef(parkedEvent),
    });
    const partition = partitionOf(subscription.id, store.partitions);
    const range = { beforeMs: time.nowMs, maxLookedAt: 10, maxRead: 10 };
    const rescue = async () => (await rescueJobs(store, partition, 'pending', range, time.nowMs)).rescued;
    expect((await Promise.all([rescue(), rescue()])).sort()).toEqual([0, 1]);
    const waiting = queueKey(partitionPrefix(store, partition), 'wait');
    expect(await store.redis.lrange(waiting, 0, -1)).toEqual([`${lost!.deliveryId}.1`]);
  });
  it('of retries are delayed until these are due, or wait behind first attempts', async () => {
    const { id } = await subscribe();
    const ids: string[] = [];
    const dueAtMs = time.nowMs + 300_000;
    for (const nextAttemptAtMs of [time.nowMs, dueAtMs]) {
      const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
      await attempt(deliveryId, 1, { kind: 'retry', nextAttemptAtMs });
      await loseJob(deliveryId);
      ids.push(deliveryId);
    }
    const [due, later] = ids.map((deliveryId) => `${deliveryId}.1`);
    const partition = partitionOf(id, store.partitions);
    const range = { beforeMs: time.nowMs, maxLookedAt: 10, maxRead: 10 };
    expect(await rescueJobs(store, partition, 'waiting_for_retry', range, time.nowMs)).toMatchObject({ rescued: 2 });
    const key = (name: string) => queueKey(partitionPrefix(store, partition), name);
    expect(await store.redis.zrange(key('prioritized'), '0', '-1')).toEqual([due]);
    expect(await store.redis.zrange(key('delayed'), '0', '-1', 'WITHSCORES')).toEqual([later, String(dueAtMs * 4096)]);
    expect(await store.redis.hgetall(key(later!))).toMatchObject({ name: id, priority: '1', delay: '300000' });
  });
});
