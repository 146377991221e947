/** Deliveries that wait outside the queue: parked, held and overdue ones. */
import { describe, expect, it } from '@jest/globals';
import { type Event, eventRef, HOUR_MS, partitionOf } from '@posthorn/core';
import {
  addressesToRelease,
  type CreatedDelivery,
  changeSubscription,
  createDeliveries,
  laneLength,
  rescueJobs,
} from '../index.ts';
import { deliveryKey, partitionPrefix, prefixOfId, queueKey } from '../keys.ts';
import { attempt, begin, deliver, event, loadOne, park, release, store, subscribe, time } from '../test-deliveries.ts';

describe('parking', () => {
  it('keeps a delivery outside the queue, and releases the oldest first under a new generation', async () => {
    const subscription = await subscribe();
    const jobs = [];
    for (let i = 0; i < 3; i++) {
      time.nowMs += 1;
      const sent = event();
      const [made] = await deliver([subscription.id], sent);
      jobs.push({
        deliveryId: made!.deliveryId,
        generation: 0,
        subscriptionId: subscription.id,
        event: eventRef(sent),
      });
    }
    for (const job of [...jobs].reverse()) expect(await park(job)).toBe('parked');
    const released = await release('parked', subscription.id, 2);
    expect(released).toEqual(jobs.slice(0, 2).map((job) => ({ ...job, generation: 1, isRetry: false })));
    // The old job of a released delivery may still run: it must neither park nor attempt it again.
    expect(await park(jobs[0]!)).toBe('superseded');
  });
});

describe('a new delivery to an address where many wait', () => {
  it('is parked from the start and gets its job in its turn, also if its event is published again', async () => {
    const subscription = await subscribe();
    const published: { event: Event; acceptedAtMs: number }[] = [];
    const publish = async () => {
      time.nowMs += 1;
      const sent = event();
      published.push({ event: sent, acceptedAtMs: time.nowMs });
      const [made] = await deliver([subscription.id], sent);
      return made!;
    };
    for (let i = 0; i < 100; i++) {
      const { deliveryId, state } = await publish();
      expect(state).toBe('pending');
      await park({
        deliveryId,
        generation: 0,
        subscriptionId: subscription.id,
        event: eventRef(published.at(-1)!.event),
      });
    }
    const born = await publish();
    expect(born.state).toBe('without_first_job');
    expect(await loadOne(born.deliveryId)).toMatchObject({ status: 'pending', attemptCount: 0 });
    for (const again of [published[0]!, published.at(-1)!]) {
      const stored = { ...again, ref: eventRef(again.event), subscriptionIds: [subscription.id] };
      expect(await createDeliveries(store, stored)).toMatchObject([{ state: 'without_first_job' }]);
    }
    const released = await release('parked', subscription.id, 101);
    expect(released.at(-1)).toMatchObject({ deliveryId: born.deliveryId, generation: 1 });
    expect((await publish()).state).toBe('pending');
  });
});

describe('a release', () => {
  it('puts any number into the queue, oldest first, retries behind first attempts, and wakes a worker', async () => {
    const { id } = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 201; i++) {
      const sent = event();
      const [made] = (await deliver([id], sent)) as [CreatedDelivery];
      if (i === 0) await attempt(made.deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs });
      time.nowMs += 1;
      if (i < 100)
        await park({ deliveryId: made.deliveryId, generation: 0, subscriptionId: id, event: eventRef(sent) });
      ids.push(made.deliveryId);
    }
    const jobs = await release('parked', id, 1_000);
    expect(jobs.map(({ deliveryId }) => deliveryId)).toEqual([...ids.slice(1), ids[0]]);
    expect(jobs.map(({ isRetry }) => isRetry)).toEqual([...Array(200).fill(false), true]);
    const marker = `${store.prefix}:{${partitionOf(id, store.partitions)}}:deliveries:marker`;
    expect(await store.redis.zrange(marker, 0, '-1')).toEqual(['0']);
    expect(await release('parked', id, 1_000)).toEqual([]);
  });
  it('wakes nobody where the queue is paused, or as many jobs are active as operators allow', async () => {
    const { id } = await subscribe();
    const queue = `${store.prefix}:{${partitionOf(id, store.partitions)}}:deliveries:`;
    for (const limit of [{ paused: 1 }, { concurrency: 0 }]) {
      await store.redis.hset(`${queue}meta`, limit);
      const sent = event();
      const [made] = (await deliver([id], sent)) as [CreatedDelivery];
      await park({ deliveryId: made.deliveryId, generation: 0, subscriptionId: id, event: eventRef(sent) });
      await store.redis.del(`${queue}marker`);
      expect(await release('parked', id, 1)).toHaveLength(1);
      expect(await store.redis.exists(`${queue}marker`)).toBe(0);
      await store.redis.del(`${queue}meta`);
    }
  });
});

describe('parked deliveries of a paused address', () => {
  it('are held from then on, and get a new job after a resume', async () => {
    const subscription = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const [{ deliveryId, ...sent }] = (await deliver([subscription.id])) as [CreatedDelivery];
      await park({ deliveryId, generation: 0, subscriptionId: sent.subscriptionId, event: eventRef(event()) });
      ids.push(deliveryId);
    }
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    expect(await release('parked', subscription.id, 1)).toEqual([]);
    expect((await Promise.all(ids.map(loadOne))).map(({ status }) => status)).toEqual(['held', 'held', 'held']);
    expect(await laneLength(store, 'held', subscription.id)).toBe(3);
    expect(await addressesToRelease(store, partitionOf(subscription.id, store.partitions), 'parked')).toEqual([]);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'active' }));
    const released = await release('held', subscription.id, 10);
    expect(released.map(({ deliveryId, generation }) => [deliveryId, generation]).sort()).toEqual(
      ids.map((id) => [id, time.nowMs + 1]).sort(),
    );
  });
});

describe('an overdue retry', () => {
  const retry = async (id: string) => {
    const sent = event();
    const [made] = await deliver([id], sent);
    await attempt(made!.deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    time.nowMs += 1;
    return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: id, event: eventRef(sent) };
  };
  it('waits in a lane, is released in order of age, and is not overdue again', async () => {
    const subscription = await subscribe();
    const partition = partitionOf(subscription.id, store.partitions);
    const jobs = [await retry(subscription.id), await retry(subscription.id), await retry(subscription.id)] as const;
    time.nowMs += HOUR_MS;
    expect(await begin(jobs[1])).toEqual({ kind: 'overdue' });
    // One that finds no free slot either.
    expect(await park(jobs[0])).toBe('overdue');
    // Asked again, as after a crash, nothing changes.
    expect(await begin(jobs[1])).toEqual({ kind: 'overdue' });
    expect(await addressesToRelease(store, partition, 'overdue')).toEqual([subscription.id]);
    await store.redis.set(queueKey(partitionPrefix(store, partition), jobs[2].deliveryId), 'job');
    const range = { beforeMs: time.nowMs, maxLookedAt: 10, maxRead: 10 };
    expect(await rescueJobs(store, partition, 'waiting_for_retry', range, time.nowMs)).toMatchObject({ rescued: 0 });
    const [first] = await release('overdue', subscription.id, 1);
    expect(first).toEqual({ ...jobs[0], generation: 1, isRetry: true });
    expect(await begin(jobs[0])).toEqual({ kind: 'superseded' });
    time.nowMs += 1_000;
    expect(await begin(first!)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    // Workers were busy, and another one still waits.
    time.nowMs += 1;
    expect(await begin(first!)).toEqual({ kind: 'overdue' });
    const again = await release('overdue', subscription.id, 1);
    expect(again).toEqual([{ ...jobs[0], generation: 2, isRetry: true }]);
    expect(await release('overdue', subscription.id, 10)).toHaveLength(1);
    expect(await addressesToRelease(store, partition, 'overdue')).toEqual([]);
    time.nowMs += 60_000;
    expect(await begin(again[0]!)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
  });
  it('keeps the time of its next retry if a slow worker records an attempt while it waits', async () => {
    const job = await retry((await subscribe()).id);
    time.nowMs += HOUR_MS;
    expect(await begin(job)).toEqual({ kind: 'overdue' });
    const dueAtMs = time.nowMs + 300_000;
    await attempt(job.deliveryId, 2, { kind: 'retry', nextAttemptAtMs: dueAtMs });
    const [released] = await release('overdue', job.subscriptionId, 1);
    expect(await begin(released!)).toEqual({ kind: 'snoozed', dueAtMs });
  });
  it('is held if its address is paused meanwhile', async () => {
    const subscription = await subscribe();
    const partition = partitionOf(subscription.id, store.partitions);
    const job = await retry(subscription.id);
    time.nowMs += HOUR_MS;
    expect(await begin(job)).toEqual({ kind: 'overdue' });
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    expect(await release('overdue', subscription.id, 10)).toEqual([]);
    expect(await loadOne(job.deliveryId)).toMatchObject({ status: 'held', nextAttemptAtMs: null });
    expect(await addressesToRelease(store, partition, 'overdue')).toEqual([]);
  });
  it('waits in one lane only if the job that a crash has left is taken while its address is paused', async () => {
    const { id } = await subscribe();
    const job = await retry(id);
    time.nowMs += HOUR_MS;
    expect(await begin(job)).toEqual({ kind: 'overdue' });
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    expect(await begin(job)).toEqual({ kind: 'held' });
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active' }));
    expect(await release('held', id, 10)).toHaveLength(1);
    // A worker may have its job by now: with a second job, two attempts would be in flight at once.
    expect(await release('overdue', id, 10)).toEqual([]);
  });
  it('says when it was first due, however often it is released, until its attempt is recorded', async () => {
    const job = await retry((await subscribe()).id);
    const dueAtMs = time.nowMs - 1 + 60_000;
    const delivery = deliveryKey(prefixOfId(store, job.deliveryId), job.deliveryId);
    const lateAndReleased = async (late: Parameters<typeof begin>[0]) => {
      time.nowMs += HOUR_MS;
      expect(await begin(late)).toEqual({ kind: 'overdue' });
      const [released] = await release('overdue', job.subscriptionId, 1);
      return released!;
    };
    const second = await lateAndReleased(await lateAndReleased(job));
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 2, dueAtMs });
    await attempt(job.deliveryId, 2, { kind: 'retry', nextAttemptAtMs: time.nowMs + 300_000 });
    time.nowMs += 300_000;
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 3, dueAtMs: time.nowMs });
    const third = await lateAndReleased(second);
    // A process of an older release knows nothing of field d.
    await store.redis.hset(delivery, 'x', time.nowMs + 1);
    time.nowMs += 2;
    expect(await begin(third)).toMatchObject({ kind: 'attempt', attemptNumber: 3, dueAtMs: time.nowMs - 1 });
    await attempt(job.deliveryId, 3, { kind: 'succeeded' });
    expect(await store.redis.hmget(delivery, 'd', 'x')).toEqual([null, null]);
  });
  it('has been due for more than a minute', async () => {
    const job = await retry((await subscribe()).id);
    time.nowMs += 60_000 + 59_000;
    expect(await begin(job)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
  });
});

describe('first attempts after an outage', () => {
  it('are overdue, unlike those of later events, and leave no due time after a success', async () => {
    const subscription = await subscribe();
    const publish = async () => {
      const sent = event();
      const [made] = await deliver([subscription.id], sent);
      return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(sent) };
    };
    const [first, second] = [await publish(), await publish()];
    // Less than a minute: a retry would not be overdue yet.
    time.nowMs += 30_000;
    const endedAtMs = time.nowMs;
    const later = await publish();
    expect(await begin(first, time.nowMs, endedAtMs)).toEqual({ kind: 'overdue' });
    expect(await park(second, time.nowMs, endedAtMs)).toBe('overdue');
    expect(await begin(later, time.nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    const [job] = await release('overdue', subscription.id, 1);
    expect(await begin(job!, time.nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    await attempt(job!.deliveryId, 1, { kind: 'succeeded' });
    expect(await loadOne(job!.deliveryId)).toMatchObject({ status: 'succeeded', nextAttemptAtMs: null });
  });
});
