/** A resume sends one held delivery first, its trial; what happens to all others depends on it. */
import { describe, expect, it } from '@jest/globals';
import { type EventRef, eventRef, nextAddressState, partitionOf, releasedAtMs, type Verdict } from '@posthorn/core';
import {
  addressesToRelease,
  changeSubscription,
  countStored,
  deleteSubscription,
  endDeliveries,
  laneLength,
  listSubscriptions,
  loadSubscriptions,
  resumingAddresses,
  sendTrial,
  waitingNotices,
} from '../index.ts';
import { byStatusKey, deliveryKey, laneKey, partitionPrefix } from '../keys.ts';
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

type Change = 'paused' | 'resumed' | 'url_changed' | 'acceptable';
const change = (id: string, kind: Change) =>
  changeSubscription(store, id, (now) => ({ ...nextAddressState(now, { kind }), updatedAtMs: time.nowMs }));
const stateOf = async (id: string) => (await loadSubscriptions(store, [id]))[0]!;
const retry = (): Verdict => ({ kind: 'retry', nextAttemptAtMs: time.nowMs + 300_000 });
const partition = (id: string) => partitionOf(id, store.partitions);
const expire = (id: string, delivery: { id: string; event: EventRef }) =>
  endDeliveries(store, {
    partition: partition(id),
    deliveries: [delivery],
    reason: 'expired',
    nowMs: time.nowMs,
  });
/** The waiting jobs of an address's partition: those of first attempts, and those behind them. */
const queueOf = async (id: string) => {
  const key = (name: string) => `${partitionPrefix(store, partition(id))}:deliveries:${name}`;
  return [await store.redis.lrange(key('wait'), 0, -1), await store.redis.zrange(key('prioritized'), '0', '-1')];
};
/** Sends the trial of an address, if there is one to send. Returns its job. */
async function trialOf(subscriptionId: string) {
  const deliveryId = await sendTrial(store, subscriptionId, time.nowMs);
  if (deliveryId === undefined) return undefined;
  const { generation, event, attemptCount } = await loadOne(deliveryId);
  return { deliveryId, generation, subscriptionId, event, isRetry: attemptCount > 0 };
}

/** An address that is paused by a failure, and `count` deliveries that it holds, oldest first. */
async function pausedWith(count: number) {
  const { id } = await subscribe();
  const [failed] = await deliver([id]);
  await attempt(failed!.deliveryId, 1, failure, 1);
  await loseJob(failed!.deliveryId);
  const held: string[] = [];
  for (let i = 0; i < count; i++) {
    time.nowMs += 1;
    const [made] = await deliver([id]);
    expect(made!.state).toBe('held');
    held.push(made!.deliveryId);
  }
  return { id, held };
}
async function resumedWith(count: number) {
  const { id, held } = await pausedWith(count);
  await change(id, 'resumed');
  return { id, held, trial: (await trialOf(id))! };
}

describe('a resume', () => {
  it('sends one held delivery and holds everything else until that one succeeds', async () => {
    const { id, held } = await pausedWith(3);
    await change(id, 'resumed');
    expect(await stateOf(id)).toMatchObject({
      status: 'active',
      resuming: true,
      lastResume: { atMs: time.nowMs, outcome: 'trying', deliveryId: null },
    });
    expect(await resumingAddresses(store, partition(id))).toEqual([id]);
    const trial = await trialOf(id);
    expect(trial).toMatchObject({
      deliveryId: held[0],
      generation: time.nowMs + 1,
      subscriptionId: id,
      isRetry: false,
    });
    expect(await queueOf(id)).toEqual([[`${held[0]}.${time.nowMs + 1}`], []]);
    expect(await trialOf(id)).toBeUndefined();
    expect(await release('held', id, 10)).toEqual([]);
    time.nowMs += 1;
    const [meanwhile] = await deliver([id]);
    expect(meanwhile!.state).toBe('held');
    expect(await begin(trial!)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    await attempt(trial!.deliveryId, 1, { kind: 'succeeded' });
    expect(await stateOf(id)).toMatchObject({
      status: 'active',
      resuming: false,
      statusReason: null,
      consecutiveFailures: 0,
      lastResume: { outcome: 'succeeded', deliveryId: held[0] },
    });
    expect(await resumingAddresses(store, partition(id))).toEqual([]);
    expect(await addressesToRelease(store, partition(id), 'held')).toEqual([id]);
    const released = await release('held', id, 10);
    expect(released.map(({ deliveryId }) => deliveryId)).toEqual([held[1], held[2], meanwhile!.deliveryId]);
  });

  it.each([
    ['is retried', retry],
    ['fails', () => failure],
  ])('pauses the address again if its trial %s; what is held stays untouched', async (_, verdict) => {
    const { id, held, trial } = await resumedWith(3);
    const before = await Promise.all(held.slice(1).map(loadOne));
    const recorded = await attempt(trial.deliveryId, 1, verdict(), 1);
    expect(recorded).toMatchObject({ kind: 'recorded', paused: false });
    expect(await stateOf(id)).toMatchObject({
      status: 'paused',
      resuming: false,
      statusReason: 'consecutive_failures',
      consecutiveFailures: 1,
      lastResume: { outcome: 'failed', deliveryId: trial.deliveryId },
    });
    expect(await Promise.all(held.slice(1).map(loadOne))).toEqual(before);
    expect(await trialOf(id)).toBeUndefined();
    expect(await laneLength(store, 'held', id)).toBe(2);
    const notices = await waitingNotices(store, partition(id), 10, {});
    expect(notices.filter(({ type }) => type === 'subscription.resume_failed')).toMatchObject([
      { subscriptionId: id, deliveryId: trial.deliveryId, reason: 'consecutive_failures' },
    ]);
  });

  it('tries the delivery with the fewest attempts, the oldest of them, among the first 100', async () => {
    const { id } = await subscribe();
    const made: string[] = [];
    for (let i = 0; i < 102; i++) {
      time.nowMs += 1;
      const [{ deliveryId } = { deliveryId: '' }] = await deliver([id]);
      made.push(deliveryId);
      for (let number = 1; number <= (i === 100 ? 1 : i === 60 || i === 70 ? 2 : 3) && i < 101; number++)
        await attempt(deliveryId, number, { kind: 'retry', nextAttemptAtMs: time.nowMs + 1 });
    }
    await change(id, 'paused');
    time.nowMs += 10;
    for (const deliveryId of made) {
      expect(await begin({ deliveryId, generation: 0, subscriptionId: id })).toEqual({ kind: 'held' });
      await loseJob(deliveryId);
    }
    await change(id, 'resumed');
    expect(await trialOf(id)).toMatchObject({ deliveryId: made[60], isRetry: true });
    // Its job waits behind first attempts, as that of any retry.
    expect(await queueOf(id)).toEqual([[], [`${made[60]}.${time.nowMs + 1}`]]);
  });

  it('puts what was held behind first attempts', async () => {
    const { id, held, trial } = await resumedWith(3);
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    expect(await release('held', id, 10)).toMatchObject([
      { deliveryId: held[1], isRetry: true },
      { deliveryId: held[2], isRetry: true },
    ]);
  });

  it('needs no trial if nothing waits in a lane', async () => {
    const { id } = await pausedWith(0);
    await change(id, 'resumed');
    expect(await stateOf(id)).toMatchObject({
      status: 'active',
      resuming: false,
      statusReason: null,
      consecutiveFailures: 0,
      lastResume: { outcome: 'succeeded', deliveryId: null },
    });
    expect((await deliver([id]))[0]!.state).toBe('pending');
  });

  it('waits until parked deliveries are held, and tries one of them', async () => {
    const { id } = await subscribe();
    const sent = event();
    const [made] = await deliver([id], sent);
    const job = { deliveryId: made!.deliveryId, generation: 0, subscriptionId: id, event: eventRef(sent) };
    expect(await park(job)).toBe('parked');
    await change(id, 'paused');
    await change(id, 'resumed');
    expect((await stateOf(id)).resuming).toBe(true);
    expect(await trialOf(id)).toBeUndefined();
    expect(await release('parked', id, 1)).toEqual([]);
    expect(await trialOf(id)).toMatchObject({ deliveryId: made!.deliveryId, generation: time.nowMs + 1 });
  });

  it('ends if the last held delivery is gone before a trial', async () => {
    const { id, held } = await pausedWith(1);
    await change(id, 'resumed');
    const { event: ref } = await loadOne(held[0]!);
    await expire(id, { id: held[0]!, event: ref });
    expect(await trialOf(id)).toBeUndefined();
    expect(await stateOf(id)).toMatchObject({ status: 'active', resuming: false });
    expect(await resumingAddresses(store, partition(id))).toEqual([]);
  });

  it('asked for again while it is resuming changes nothing', async () => {
    const { id, trial } = await resumedWith(2);
    const before = await stateOf(id);
    expect(await changeSubscription(store, id, (now) => nextAddressState(now, { kind: 'resumed' }))).toMatchObject({
      lastResume: before.lastResume,
      resuming: true,
    });
    expect(await trialOf(id)).toBeUndefined();
    expect(before.lastResume?.deliveryId).toBe(trial.deliveryId);
  });

  it('is listed and counted as active', async () => {
    const { id } = await resumedWith(1);
    const { items } = await listSubscriptions(store, { status: 'active' }, { limit: 10 });
    expect(items.map((item) => item.id)).toEqual([id]);
    expect((await listSubscriptions(store, { status: 'paused' }, { limit: 10 })).items).toEqual([]);
    expect((await listSubscriptions(store, {}, { limit: 10 })).items).toHaveLength(1);
    expect((await countStored(store, time.nowMs)).subscriptions).toMatchObject({ active: 1, paused: 0 });
  });
});

describe('a trial', () => {
  it('that finds no slot is parked and released, not held', async () => {
    const { id, trial } = await resumedWith(2);
    expect(await park(trial)).toBe('parked');
    expect(await trialOf(id)).toBeUndefined();
    const released = await release('parked', id, 1);
    expect(released).toMatchObject([{ deliveryId: trial.deliveryId, generation: trial.generation + 1 }]);
    expect(await begin(released[0]!)).toMatchObject({ kind: 'attempt' });
  });
  it('that is overdue after an outage is released, not held', async () => {
    const { id, trial } = await resumedWith(2);
    expect(await begin(trial, time.nowMs, time.nowMs + 1)).toEqual({ kind: 'overdue' });
    expect(await trialOf(id)).toBeUndefined();
    const [released] = await release('overdue', id, 1);
    expect(released).toMatchObject({ deliveryId: trial.deliveryId });
    expect(await begin(released!)).toMatchObject({ kind: 'attempt' });
  });
  it('is replaced if a worker that knows no trials has held it', async () => {
    const { id, held, trial } = await resumedWith(2);
    const prefix = partitionPrefix(store, partition(id));
    await store.redis.hset(deliveryKey(prefix, trial.deliveryId), { st: '2' });
    await store.redis.zrem(byStatusKey(prefix, 'pending'), trial.deliveryId);
    await store.redis.zadd(byStatusKey(prefix, 'held'), 0, trial.deliveryId);
    await store.redis.zadd(laneKey(prefix, 'held', id), 0, trial.deliveryId);
    expect(await trialOf(id)).toMatchObject({ deliveryId: held[0], generation: trial.generation + 1 });
  });
  it('is replaced if it ended without an attempt', async () => {
    const { id, held, trial } = await resumedWith(2);
    await expire(id, { id: trial.deliveryId, event: trial.event });
    expect(await trialOf(id)).toMatchObject({ deliveryId: held[1] });
  });
  it('of an address that an operator has paused is held, and its result does not count', async () => {
    const { id, trial } = await resumedWith(2);
    await change(id, 'paused');
    expect(await stateOf(id)).toMatchObject({ status: 'paused', statusReason: 'operator', lastResume: null });
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    expect(await stateOf(id)).toMatchObject({ status: 'paused', statusReason: 'operator' });
    await change(id, 'resumed');
    const next = await trialOf(id);
    expect(next).toBeDefined();
    await change(id, 'paused');
    expect(await begin(next!)).toEqual({ kind: 'held' });
  });
  it('of an earlier resume says nothing about a later one', async () => {
    const { id, held, trial } = await resumedWith(2);
    await change(id, 'paused');
    await change(id, 'resumed');
    expect(await trialOf(id)).toMatchObject({ deliveryId: held[1] });
    await attempt(trial.deliveryId, 1, retry());
    expect(await stateOf(id)).toMatchObject({ resuming: true, lastResume: { outcome: 'trying', deliveryId: held[1] } });
  });
  it('is held if the url changes meanwhile, and the resume is over', async () => {
    const { id, trial } = await resumedWith(2);
    await change(id, 'url_changed');
    expect(await stateOf(id)).toMatchObject({ status: 'awaiting_validation', resuming: false, lastResume: null });
    expect(await resumingAddresses(store, partition(id))).toEqual([]);
    expect(await begin(trial)).toEqual({ kind: 'held' });
    await change(id, 'acceptable');
    expect(await release('held', id, 10)).toHaveLength(2);
  });
  it('ends with its subscription', async () => {
    const { id, trial } = await resumedWith(2);
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    expect(await resumingAddresses(store, partition(id))).toEqual([]);
    expect(await trialOf(id)).toBeUndefined();
    expect(await begin(trial)).toEqual({ kind: 'subscription_deleted' });
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    expect(await stateOf(id)).toBeUndefined();
  });
  it('is taken once by processes that ask at the same time', async () => {
    const { id } = await pausedWith(5);
    await change(id, 'resumed');
    const taken = await Promise.all(Array.from({ length: 10 }, () => trialOf(id)));
    expect(taken.filter((job) => job !== undefined)).toHaveLength(1);
    expect(await laneLength(store, 'held', id)).toBe(4);
  });
});

describe('a test delivery', () => {
  it('is sent while the address is resuming', async () => {
    const { id } = await resumedWith(1);
    const sent = event({ type: 'webhook.test' });
    const [made] = await deliver([id], sent);
    expect(made!.state).toBe('pending');
    const job = { deliveryId: made!.deliveryId, generation: 0, subscriptionId: id, event: eventRef(sent) };
    expect(await begin(job)).toMatchObject({ kind: 'attempt' });
    expect(await park(job)).toBe('parked');
    const [released] = await release('parked', id, 1);
    expect(await begin(released!)).toMatchObject({ kind: 'attempt' });
    const before = await stateOf(id);
    await attempt(made!.deliveryId, 1, failure, 1);
    expect(await stateOf(id)).toEqual(before);
  });

  it('is held while the address is paused, also if it was requested before', async () => {
    const { id } = await subscribe();
    const [made] = await deliver([id], event({ type: 'webhook.test' }));
    expect(made!.state).toBe('pending');
    await change(id, 'paused');
    expect(await begin({ deliveryId: made!.deliveryId, generation: 0, subscriptionId: id })).toEqual({ kind: 'held' });
    expect((await deliver([id], event({ type: 'webhook.test' })))[0]!.state).toBe('held');
  });

  it('is held while a new url awaits its validation', async () => {
    const { id } = await pausedWith(1);
    await change(id, 'url_changed');
    expect((await deliver([id], event({ type: 'webhook.test' })))[0]!.state).toBe('held');
  });
});

describe('the age of the oldest pending delivery', () => {
  const age = async () => (await countStored(store, time.nowMs)).oldestPendingAgeMs;

  it('counts from the release of a delivery that was held, also after it was parked', async () => {
    const { id, held } = await pausedWith(3);
    time.nowMs += 600_000;
    await change(id, 'resumed');
    const trial = (await trialOf(id))!;
    time.nowMs += 20;
    expect(await age()).toBe(19);
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    expect(await age()).toBe(0);
    const released = await release('held', id, 10);
    expect(released.map(({ deliveryId, generation }) => [deliveryId, releasedAtMs(generation)])).toEqual([
      [held[1], time.nowMs + 1],
      [held[2], time.nowMs + 1],
    ]);
    for (const job of released) expect(await park(job)).toBe('parked');
    time.nowMs += 100;
    for (const { generation } of await release('parked', id, 10))
      expect(releasedAtMs(generation)).toBe(time.nowMs - 98);
    expect(await age()).toBe(98);
  });

  it("is that of one that can't be read too", async () => {
    const { id } = await subscribe();
    const [made] = await deliver([id]);
    const key = deliveryKey(partitionPrefix(store, partition(id)), made!.deliveryId);
    await store.redis.del(key);
    await store.redis.set(key, 'wrong');
    time.nowMs += 70;
    expect(await age()).toBe(70);
  });

  it('counts from the last release of one that was held twice', async () => {
    const { id, trial } = await resumedWith(2);
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    const [first] = await release('held', id, 10);
    await change(id, 'paused');
    expect(await begin(first!)).toEqual({ kind: 'held' });
    await change(id, 'resumed');
    time.nowMs += 600_000;
    const again = (await trialOf(id))!;
    expect(await begin(first!)).toEqual({ kind: 'superseded' });
    expect(await begin(again)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    time.nowMs += 50;
    expect(await age()).toBe(49);
  });

  it('never goes back to an earlier generation, by whichever clock', async () => {
    const { id, trial } = await resumedWith(2);
    await attempt(trial.deliveryId, 1, { kind: 'succeeded' });
    const [first] = await release('held', id, 10);
    await change(id, 'paused');
    await begin(first!);
    await change(id, 'resumed');
    time.nowMs -= 1_000;
    expect((await trialOf(id))!.generation).toBe(first!.generation + 1);
  });

  it.each([
    { held: 100, ageMs: 35_000 },
    { held: 101, ageMs: 4_999 },
  ])('is that of a delivery that was never held, if fewer than 100 before it were', async ({ held, ageMs }) => {
    const { id } = await pausedWith(held);
    // In the same partition: each has its own oldest one.
    let other = await subscribe();
    while (partition(other.id) !== partition(id)) other = await subscribe();
    time.nowMs += 600_000;
    await deliver([other.id]);
    time.nowMs += 30_000;
    await change(id, 'resumed');
    await attempt((await trialOf(id))!.deliveryId, 1, { kind: 'succeeded' });
    expect(await release('held', id, 200)).toHaveLength(held - 1);
    time.nowMs += 5_000;
    expect(await age()).toBe(ageMs);
  });
});
