/** Deliveries that wait outside the queue, and late ones that are paced. */
import { describe, expect, it } from '@jest/globals';
import { type Event, eventRef, partitionOf } from '@posthorn/core';
import {
  addressesToRelease,
  type CreatedDelivery,
  changeSubscription,
  createDeliveries,
  heldDeliveries,
  releaseDeliveries,
} from './index.ts';
import { attempt, begin, deliver, event, loadOne, park, store, subscribe, time } from './test-deliveries.ts';

describe('parking', () => {
  it('keeps a delivery outside the queue, and releases the oldest first under a new generation', async () => {
    const subscription = await subscribe();
    const jobs = [];
    for (let i = 0; i < 3; i++) {
      time.nowMs += 1;
      const of = event();
      const [made] = await deliver([subscription.id], of);
      jobs.push({ deliveryId: made!.deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(of) });
    }
    for (const job of [...jobs].reverse()) expect(await park(job)).toEqual({ kind: 'parked' });
    const released = await releaseDeliveries(store, 'parked', subscription.id, 2, time.nowMs);
    expect(released).toEqual(jobs.slice(0, 2).map((job) => ({ ...job, generation: 1, isRetry: false })));
    // The old job of a released delivery may still run: it must neither park nor attempt it again.
    expect(await park(jobs[0]!)).toEqual({ kind: 'superseded' });
  });
});

describe('a new delivery to an address where many wait', () => {
  it('is parked from the start and gets its job in its turn, also if its event is published again', async () => {
    const subscription = await subscribe();
    const published: Event[] = [];
    const publish = async () => {
      time.nowMs += 1;
      const of = event();
      published.push(of);
      const [made] = await deliver([subscription.id], of);
      return made!;
    };
    for (let i = 0; i < 100; i++) {
      const { deliveryId, state } = await publish();
      expect(state).toBe('pending');
      await park({ deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(published.at(-1)!) });
    }
    const born = await publish();
    expect(born.state).toBe('alreadyQueued');
    expect(await loadOne(born.deliveryId)).toMatchObject({ status: 'pending', attemptCount: 0 });
    for (const again of [published[0]!, published.at(-1)!]) {
      const stored = {
        ref: eventRef(again),
        event: again,
        acceptedAtMs: time.nowMs,
        subscriptionIds: [subscription.id],
      };
      expect(await createDeliveries(store, stored)).toMatchObject([{ state: 'alreadyQueued' }]);
    }
    const released = await releaseDeliveries(store, 'parked', subscription.id, 101, time.nowMs);
    expect(released.at(-1)).toMatchObject({ deliveryId: born.deliveryId, generation: 1 });
    expect((await publish()).state).toBe('pending');
  });
});

describe('parked deliveries of a paused address', () => {
  it('are held from then on, and get a new job after a resume', async () => {
    const subscription = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const [{ deliveryId, ...of }] = (await deliver([subscription.id])) as [CreatedDelivery];
      await park({ deliveryId, generation: 0, subscriptionId: of.subscriptionId, event: eventRef(event()) });
      ids.push(deliveryId);
    }
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    expect(await releaseDeliveries(store, 'parked', subscription.id, 1, time.nowMs)).toEqual([]);
    expect((await Promise.all(ids.map(loadOne))).map(({ status }) => status)).toEqual(['held', 'held', 'held']);
    expect(await heldDeliveries(store, subscription.id)).toBe(3);
    expect(await addressesToRelease(store, partitionOf(subscription.id, store.partitions), 'parked')).toEqual([]);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'active' }));
    const released = await releaseDeliveries(store, 'held', subscription.id, 10, time.nowMs);
    expect(released.map(({ deliveryId, generation }) => [deliveryId, generation]).sort()).toEqual(
      ids.map((id) => [id, 1]).sort(),
    );
  });
});

describe('late retries', () => {
  it('are paced at the rate of their address; retries on time and other addresses do not wait', async () => {
    const [subscription, other] = [await subscribe(), await subscribe()];
    const waiting = async (id: string) => {
      const of = event();
      const [made] = await deliver([id], of);
      await attempt(made!.deliveryId, 1, { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: time.nowMs + 60_000 });
      return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: id, event: eventRef(of) };
    };
    const [first, second, third, fourth] = [
      await waiting(subscription.id),
      await waiting(subscription.id),
      await waiting(subscription.id),
      await waiting(subscription.id),
    ];
    const elsewhere = await waiting(other.id);
    time.nowMs += 3_600_000;
    expect(await begin(first)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    time.nowMs += 1;
    expect(await begin(first)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin(second)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs - 1 + 20 });
    expect(await park(third)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs - 1 + 40 });
    expect(await begin(elsewhere)).toMatchObject({ kind: 'attempt' });
    // Asked again, as after a crash, each keeps its turn.
    expect(await begin(third)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs - 1 + 40 });
    expect((await loadOne(second.deliveryId)).nextAttemptAtMs).toBe(time.nowMs - 1 + 20);
    time.nowMs += 200;
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await park(fourth)).toEqual({ kind: 'parked' });
    // Those that have missed their turn stand in line once more.
    time.nowMs += 500;
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin(third)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs + 20 });
    const keys = await store.redis.keys(`${store.prefix}:*:paced:*`);
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  });
  it('are not paced if none is late by more than a minute', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: time.nowMs + 60_000 });
    time.nowMs += 60_000 + 59_000;
    const job = { deliveryId, generation: 0, subscriptionId: subscription.id };
    expect(await begin(job)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await store.redis.keys(`${store.prefix}:*:paced:*`)).toEqual([]);
  });
});

describe('first attempts after an outage', () => {
  it('are paced like late retries, unlike those of later events, and leave no due time after a success', async () => {
    const subscription = await subscribe();
    const waiting = async () => {
      const of = event();
      const [made] = await deliver([subscription.id], of);
      return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(of) };
    };
    const [first, second, third] = [await waiting(), await waiting(), await waiting()];
    // Less than a minute: a retry would not be paced yet.
    time.nowMs += 30_000;
    const endedAtMs = time.nowMs;
    const later = await waiting();
    expect(await begin(first, time.nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    expect(await begin(second, time.nowMs, endedAtMs)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs + 20 });
    expect(await park(third, time.nowMs, endedAtMs)).toEqual({ kind: 'snoozed', dueAtMs: time.nowMs + 40 });
    time.nowMs += 1_000;
    expect(await begin(later, time.nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    await attempt(second.deliveryId, 1, { kind: 'succeeded' });
    expect(await loadOne(second.deliveryId)).toMatchObject({ status: 'succeeded', nextAttemptAtMs: null });
  });
});
