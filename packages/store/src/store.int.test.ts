/** What the scripts guarantee on a real Redis, with time in the test's hands. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type Attempt,
  type DeliveryJob,
  type Event,
  eventRef,
  newEventId,
  partitionOf,
  type Verdict,
} from '@posthorn/core';
import {
  addressesToRelease,
  beginAttempt,
  type CreatedDelivery,
  changeSubscription,
  closeSubscription,
  confirmFanOut,
  createDeliveries,
  deleteSubscription,
  endDeliveries,
  expectedJobs,
  findMatches,
  heldBefore,
  heldDeliveries,
  interruptedFanOuts,
  keepEvent,
  listDeliveries,
  listSubscriptions,
  loadDeliveries,
  loadEvent,
  loadSubscriptions,
  newSubscription,
  parkDelivery,
  partitionPrefix,
  pruneFinished,
  recordAttempt,
  releaseDeliveries,
  rescueJobs,
  type Store,
  type StoredSubscription,
  saveSubscription,
  storeEvent,
} from './index.ts';
import { DAY, openTestStore, RETENTION } from './test-store.ts';

let store: Store;
let close: () => Promise<void>;
let nowMs: number;

beforeEach(async () => {
  ({ store, close } = await openTestStore(4));
  nowMs = Date.now();
});
afterEach(() => close());

async function subscribe(change: Partial<StoredSubscription> = {}): Promise<StoredSubscription> {
  const fresh = newSubscription(
    { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '', sealedSecret: 'sealed' },
    nowMs,
  );
  const made = { ...fresh, status: 'active' as const, takesEvents: true, ...change };
  expect(await saveSubscription(store, made)).toBe(true);
  return (await loadSubscriptions(store, [made.id]))[0]!;
}
function event(change: Partial<Event> = {}): Event {
  const createdAt = new Date(nowMs).toISOString();
  return {
    id: newEventId(nowMs),
    type: 'session.created',
    createdAt,
    environment: 'sandbox',
    dataJson: '{"id":"s"}',
    ...change,
  };
}
async function deliver(subscriptionIds: string[], of = event()) {
  const stored = { ref: eventRef(of), event: of, acceptedAtMs: nowMs, subscriptionIds };
  await storeEvent(store, stored);
  return await createDeliveries(store, stored);
}
const one = async (id: string) => (await loadDeliveries(store, [id]))[0]!;
const failure: Verdict = { kind: 'failed', reason: 'timeout' };
async function attempt(deliveryId: string, number: number, verdict: Verdict, pauseAfter = 20) {
  const delivery = await one(deliveryId);
  const made: Attempt = {
    number,
    startedAtMs: nowMs,
    durationMs: 10,
    statusCode: verdict.kind === 'succeeded' ? 200 : null,
    error: verdict.kind === 'succeeded' ? null : 'timeout',
  };
  return await recordAttempt(store, delivery, made, verdict, { pauseAfter, maxAttempts: 6 });
}

/** 50 late attempts a second. */
const pacing = { perSecond: 50, dueBeforeMs: 0 };
const begin = (job: Parameters<typeof beginAttempt>[1], atMs = nowMs, dueBeforeMs = 0) =>
  beginAttempt(store, job, atMs, { ...pacing, dueBeforeMs });
const park = (job: DeliveryJob, atMs = nowMs, dueBeforeMs = 0) =>
  parkDelivery(store, job, atMs, { ...pacing, dueBeforeMs });

describe('matching', () => {
  it('sees a subscription from the write on, as it is then', async () => {
    const both = await subscribe();
    const created = await subscribe({ eventTypes: ['session.created'], environment: 'sandbox' });
    await subscribe({ eventTypes: ['session.declined'] });
    await subscribe({ environment: 'production' });
    await subscribe({ takesEvents: false, status: 'awaiting_validation' });
    const match = (type: Event['type'] = 'session.created') => findMatches(store, { type, environment: 'sandbox' });
    expect((await match()).sort()).toEqual([both.id, created.id].sort());
    await changeSubscription(store, created.id, (now) => ({ ...now, eventTypes: ['session.expired'] }));
    expect(await match()).toEqual([both.id]);
    expect((await match('session.expired')).sort()).toEqual([both.id, created.id].sort());
    await deleteSubscription(store, both.id, nowMs, { operator: 'anna' });
    expect(await match()).toEqual([]);
  });
  it('a save of an outdated state is refused', async () => {
    const subscription = await subscribe();
    expect(await saveSubscription(store, { ...subscription, description: 'a' })).toBe(true);
    expect(await saveSubscription(store, { ...subscription, description: 'b' })).toBe(false);
  });
});

describe('fan-out', () => {
  it('repeated, it makes nothing new and changes nothing that has moved on', async () => {
    const subscription = await subscribe();
    const of = event();
    const [first] = await deliver([subscription.id], of);
    expect(first?.state).toBe('pending');
    const again = { ref: eventRef(of), event: of, acceptedAtMs: nowMs, subscriptionIds: [subscription.id] };
    expect((await createDeliveries(store, again))[0]).toEqual(first);
    await attempt(first!.deliveryId, 1, { kind: 'succeeded' });
    expect((await createDeliveries(store, again))[0]?.state).toBe('alreadyQueued');
    expect((await one(first!.deliveryId)).status).toBe('succeeded');
  });
  it('the event keeps the list it was matched to, and the first content wins', async () => {
    const subscription = await subscribe();
    const of = event({ dataJson: '{"id":"s","text":"a\\nb"}' });
    const stored = {
      ref: eventRef(of),
      event: of,
      acceptedAtMs: nowMs,
      subscriptionIds: [subscription.id],
    };
    expect(await storeEvent(store, stored)).toEqual({ created: [] });
    expect(await storeEvent(store, { ...stored, subscriptionIds: [] })).toEqual({ kept: stored });
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
  });
  it('stands in the list of interrupted ones until it is confirmed', async () => {
    const subscription = await subscribe();
    const of = event();
    await deliver([subscription.id], of);
    expect(await interruptedFanOuts(store, nowMs - 1, 10)).toEqual([]);
    expect(await interruptedFanOuts(store, nowMs, 10)).toEqual([eventRef(of)]);
    await confirmFanOut(store, eventRef(of));
    expect(await interruptedFanOuts(store, nowMs, 10)).toEqual([]);
  });
  it('to a paused address the delivery is held from the start; to a deleted one there is none', async () => {
    const paused = await subscribe({ status: 'paused' });
    const deleted = await subscribe();
    await deleteSubscription(store, deleted.id, nowMs, { operator: 'anna' });
    const made = await deliver([paused.id, deleted.id]);
    expect(made.map(({ state }) => state).sort()).toEqual(['held', 'none']);
    expect(await heldDeliveries(store, paused.id)).toBe(1);
  });
});

describe('attempts', () => {
  it('are recorded once: a second record of the same number changes nothing', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    const retry: Verdict = { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: nowMs + 60_000 };
    expect((await attempt(deliveryId, 1, retry)).kind).toBe('recorded');
    expect((await attempt(deliveryId, 1, { kind: 'succeeded' })).kind).toBe('repeated');
    expect(await one(deliveryId)).toMatchObject({
      status: 'waiting_for_retry',
      attemptCount: 1,
      nextAttemptAtMs: nowMs + 60_000,
    });
    expect((await attempt(deliveryId, 2, { kind: 'succeeded' })).kind).toBe('recorded');
    expect((await attempt(deliveryId, 3, failure)).kind).toBe('over');
    expect(await one(deliveryId)).toMatchObject({
      status: 'succeeded',
      attemptCount: 2,
      nextAttemptAtMs: null,
      attempts: [
        { number: 1, error: 'timeout', statusCode: null },
        { number: 2, error: null, statusCode: 200 },
      ],
    });
  });
  it('a job that runs before its time is told so, one of an older generation does nothing', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: nowMs + 60_000 });
    const job = { deliveryId, generation: 0, subscriptionId: subscription.id };
    expect(await begin(job, nowMs)).toEqual({ kind: 'snoozed', dueAtMs: nowMs + 60_000 });
    expect(await begin(job, nowMs + 60_000)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin({ ...job, generation: 1 }, nowMs + 60_000)).toEqual({ kind: 'superseded' });
  });
});

describe('pause', () => {
  it('the 20th consecutive failed delivery pauses the address, exactly then', async () => {
    const subscription = await subscribe();
    for (let i = 1; i <= 21; i++) {
      const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
      const recorded = await attempt(deliveryId, 1, failure);
      expect([i, recorded.consecutiveFailures, recorded.paused]).toEqual([i, i, i === 20]);
      const [now] = await loadSubscriptions(store, [subscription.id]);
      expect([i, now?.status]).toEqual([i, i >= 20 ? 'paused' : 'active']);
    }
    const [now] = await loadSubscriptions(store, [subscription.id]);
    expect(now).toMatchObject({ statusReason: 'consecutive_failures', consecutiveFailures: 21 });
  });
  it('a success sets the count to 0', async () => {
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
  it('failures counted by many workers at once pause once', async () => {
    const subscription = await subscribe();
    const made = await Promise.all(Array.from({ length: 40 }, () => deliver([subscription.id])));
    const recorded = await Promise.all(made.map(([delivery]) => attempt(delivery!.deliveryId, 1, failure)));
    expect(recorded.filter(({ paused }) => paused)).toHaveLength(1);
    expect(recorded.find(({ paused }) => paused)?.consecutiveFailures).toBe(20);
  });
  it('while paused a due retry is held with its attempts; resumed, it goes on from there under a new generation', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', delayMs: 1, nextAttemptAtMs: nowMs + 1 });
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    nowMs += 1_000;
    expect(await begin({ deliveryId, generation: 0, subscriptionId: subscription.id }, nowMs)).toEqual({
      kind: 'held',
    });
    expect(await one(deliveryId)).toMatchObject({ status: 'held', attemptCount: 1, nextAttemptAtMs: null });
    expect(await releaseDeliveries(store, 'held', subscription.id, 10, nowMs)).toEqual([]);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'active', consecutiveFailures: 0 }));
    const partition = partitionOf(subscription.id, store.partitions);
    expect(await addressesToRelease(store, partition, 'held')).toEqual([subscription.id]);
    const released = await releaseDeliveries(store, 'held', subscription.id, 10, nowMs);
    expect(released).toMatchObject([{ deliveryId, generation: 1, isRetry: true }]);
    expect(await addressesToRelease(store, partition, 'held')).toEqual([]);
    expect((await one(deliveryId)).status).toBe('waiting_for_retry');
    expect(await begin({ deliveryId, generation: 0, subscriptionId: subscription.id }, nowMs)).toEqual({
      kind: 'superseded',
    });
    expect(await begin({ deliveryId, generation: 1, subscriptionId: subscription.id }, nowMs)).toMatchObject({
      kind: 'attempt',
      attemptNumber: 2,
    });
  });
});

describe('parking', () => {
  it('a parked delivery waits outside the queue and comes back under a new generation, oldest first', async () => {
    const subscription = await subscribe();
    const jobs = [];
    for (let i = 0; i < 3; i++) {
      nowMs += 1;
      const of = event();
      const [made] = await deliver([subscription.id], of);
      jobs.push({ deliveryId: made!.deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(of) });
    }
    for (const job of [...jobs].reverse()) expect(await park(job)).toEqual({ kind: 'parked' });
    const released = await releaseDeliveries(store, 'parked', subscription.id, 2, nowMs);
    expect(released).toEqual(jobs.slice(0, 2).map((job) => ({ ...job, generation: 1, isRetry: false })));
    // The old job of a released delivery may still run: it must neither park nor attempt it again.
    expect(await park(jobs[0]!)).toEqual({ kind: 'superseded' });
  });
});

describe('a new delivery to an address where many wait', () => {
  it('is parked from the start, needs no job, not even when its event is published again, and comes when it is its turn', async () => {
    const subscription = await subscribe();
    const published: Event[] = [];
    const publish = async () => {
      nowMs += 1;
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
    expect(await one(born.deliveryId)).toMatchObject({ status: 'pending', attemptCount: 0 });
    for (const again of [published[0]!, published.at(-1)!]) {
      const stored = { ref: eventRef(again), event: again, acceptedAtMs: nowMs, subscriptionIds: [subscription.id] };
      expect(await createDeliveries(store, stored)).toMatchObject([{ state: 'alreadyQueued' }]);
    }
    const released = await releaseDeliveries(store, 'parked', subscription.id, 101, nowMs);
    expect(released.at(-1)).toMatchObject({ deliveryId: born.deliveryId, generation: 1 });
    expect((await publish()).state).toBe('pending');
  });
});

describe('retries that are late', () => {
  it('have a turn each, at the rate of their address; those that are not late, and other addresses, do not wait', async () => {
    const [subscription, other] = [await subscribe(), await subscribe()];
    const waiting = async (id: string) => {
      const of = event();
      const [made] = await deliver([id], of);
      await attempt(made!.deliveryId, 1, { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: nowMs + 60_000 });
      return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: id, event: eventRef(of) };
    };
    const [first, second, third, fourth] = [
      await waiting(subscription.id),
      await waiting(subscription.id),
      await waiting(subscription.id),
      await waiting(subscription.id),
    ];
    const elsewhere = await waiting(other.id);
    nowMs += 3_600_000;
    expect(await begin(first)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    nowMs += 1;
    expect(await begin(first)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin(second)).toEqual({ kind: 'snoozed', dueAtMs: nowMs - 1 + 20 });
    expect(await park(third)).toEqual({ kind: 'snoozed', dueAtMs: nowMs - 1 + 40 });
    expect(await begin(elsewhere)).toMatchObject({ kind: 'attempt' });
    // Asked again, as after a crash, each keeps its turn.
    expect(await begin(third)).toEqual({ kind: 'snoozed', dueAtMs: nowMs - 1 + 40 });
    expect((await one(second.deliveryId)).nextAttemptAtMs).toBe(nowMs - 1 + 20);
    nowMs += 200;
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await park(fourth)).toEqual({ kind: 'parked' });
    // Those that have missed their turn stand in line once more.
    nowMs += 500;
    expect(await begin(second)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await begin(third)).toEqual({ kind: 'snoozed', dueAtMs: nowMs + 20 });
    const keys = await store.redis.keys(`${store.prefix}:*:paced:*`);
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  });
  it('are not in line where nobody is late by more than a minute', async () => {
    const subscription = await subscribe();
    const [{ deliveryId }] = (await deliver([subscription.id])) as [CreatedDelivery];
    await attempt(deliveryId, 1, { kind: 'retry', delayMs: 60_000, nextAttemptAtMs: nowMs + 60_000 });
    nowMs += 60_000 + 59_000;
    const job = { deliveryId, generation: 0, subscriptionId: subscription.id };
    expect(await begin(job)).toMatchObject({ kind: 'attempt', attemptNumber: 2 });
    expect(await store.redis.keys(`${store.prefix}:*:paced:*`)).toEqual([]);
  });
});

describe('first attempts that waited for an outage to end', () => {
  it('are paced like late retries, those of later events are not, and a success leaves no due time behind', async () => {
    const subscription = await subscribe();
    const waiting = async () => {
      const of = event();
      const [made] = await deliver([subscription.id], of);
      return { deliveryId: made!.deliveryId, generation: 0, subscriptionId: subscription.id, event: eventRef(of) };
    };
    const [first, second, third] = [await waiting(), await waiting(), await waiting()];
    // Less than a minute: a retry would not be paced yet.
    nowMs += 30_000;
    const endedAtMs = nowMs;
    const later = await waiting();
    expect(await begin(first, nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    expect(await begin(second, nowMs, endedAtMs)).toEqual({ kind: 'snoozed', dueAtMs: nowMs + 20 });
    expect(await park(third, nowMs, endedAtMs)).toEqual({ kind: 'snoozed', dueAtMs: nowMs + 40 });
    nowMs += 1_000;
    expect(await begin(later, nowMs, endedAtMs)).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    await attempt(second.deliveryId, 1, { kind: 'succeeded' });
    expect(await one(second.deliveryId)).toMatchObject({ status: 'succeeded', nextAttemptAtMs: null });
  });
});

describe('lost jobs', () => {
  it('a delivery without a job is found, but not one that is parked, and gets a new generation once', async () => {
    const subscription = await subscribe();
    const [lost] = await deliver([subscription.id]);
    const parkedEvent = event();
    const [parked] = await deliver([subscription.id], parkedEvent);
    await park({
      deliveryId: parked!.deliveryId,
      generation: 0,
      subscriptionId: subscription.id,
      event: eventRef(parkedEvent),
    });
    const partition = partitionOf(subscription.id, store.partitions);
    const { jobs } = await expectedJobs(store, partition, 'pending', nowMs, 0, 10);
    expect(jobs.map(({ deliveryId }) => deliveryId)).toEqual([lost!.deliveryId]);
    expect(await rescueJobs(store, partition, jobs)).toMatchObject([
      { deliveryId: lost!.deliveryId, generation: 1, dueAtMs: 0 },
    ]);
    expect(await rescueJobs(store, partition, jobs)).toEqual([]);
  });
});

describe('parked at an address that is paused', () => {
  it('they are held from then on, need no job, and go out after a resume with a new one', async () => {
    const subscription = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const [{ deliveryId, ...of }] = (await deliver([subscription.id])) as [CreatedDelivery];
      await park({ deliveryId, generation: 0, subscriptionId: of.subscriptionId, event: eventRef(event()) });
      ids.push(deliveryId);
    }
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    expect(await releaseDeliveries(store, 'parked', subscription.id, 1, nowMs)).toEqual([]);
    expect((await Promise.all(ids.map(one))).map(({ status }) => status)).toEqual(['held', 'held', 'held']);
    expect(await heldDeliveries(store, subscription.id)).toBe(3);
    expect(await addressesToRelease(store, partitionOf(subscription.id, 4), 'parked')).toEqual([]);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'active' }));
    const released = await releaseDeliveries(store, 'held', subscription.id, 10, nowMs);
    expect(released.map(({ deliveryId, generation }) => [deliveryId, generation]).sort()).toEqual(
      ids.map((id) => [id, 1]).sort(),
    );
  });
});

describe('retention', () => {
  const expiryOf = async (key: string) => await store.redis.pexpiretime(key);
  const deliveryKey = (subscriptionId: string, id: string) =>
    `${partitionPrefix(store, partitionOf(subscriptionId, 4))}:delivery:${id}`;
  const eventKey = (of: Event) => `${partitionPrefix(store, partitionOf(of.id, 4))}:event:${eventRef(of)}`;

  it('a failed delivery and its event stay for as long as it can be replayed, and a day', async () => {
    const subscription = await subscribe();
    const of = event();
    const [{ deliveryId }] = (await deliver([subscription.id], of)) as [CreatedDelivery];
    nowMs += 14 * 3_600_000;
    await attempt(deliveryId, 1, failure);
    // A day longer than it can be replayed, so that one who comes too late is told so.
    const until = nowMs + 10 + RETENTION + DAY;
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(until);
    expect(await expiryOf(eventKey(of))).toBe(until);
  });
  it('a delivery that succeeds at once goes with its event; an unfinished one has no end of its own', async () => {
    const subscription = await subscribe();
    const of = event();
    const [{ deliveryId }] = (await deliver([subscription.id], of)) as [CreatedDelivery];
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(-1);
    await attempt(deliveryId, 1, { kind: 'succeeded' });
    expect(await expiryOf(deliveryKey(subscription.id, deliveryId))).toBe(nowMs + RETENTION);
    expect(await expiryOf(eventKey(of))).toBe(nowMs + RETENTION);
  });
  it('the life of an event is only ever prolonged', async () => {
    const of = event();
    await storeEvent(store, { ref: eventRef(of), event: of, acceptedAtMs: nowMs, subscriptionIds: [] });
    await keepEvent(store, eventRef(of), nowMs + 1_000);
    expect(await expiryOf(eventKey(of))).toBe(nowMs + RETENTION);
  });
  it('held deliveries older than the retention end as failed, reason expired, and can still be replayed', async () => {
    const subscription = await subscribe({ status: 'paused' });
    const of = event();
    const [{ deliveryId }] = (await deliver([subscription.id], of)) as [CreatedDelivery];
    const partition = partitionOf(subscription.id, 4);
    expect(await heldBefore(store, partition, nowMs - 1, 10)).toEqual([]);
    const old = await heldBefore(store, partition, nowMs, 10);
    nowMs += RETENTION;
    await endDeliveries(store, partition, old, 'expired', nowMs, { onlyHeld: true });
    expect(await one(deliveryId)).toMatchObject({ status: 'failed', failureReason: 'expired', finishedAtMs: nowMs });
    expect(await heldDeliveries(store, subscription.id)).toBe(0);
    expect(await expiryOf(eventKey(of))).toBe(nowMs + RETENTION + DAY);
  });
  it('an index loses the entries whose delivery has expired, and keeps the others', async () => {
    const subscription = await subscribe();
    const [gone] = await deliver([subscription.id]);
    const [kept] = await deliver([subscription.id]);
    for (const { deliveryId } of [gone!, kept!]) await attempt(deliveryId, 1, { kind: 'succeeded' });
    await store.redis.del(deliveryKey(subscription.id, gone!.deliveryId));
    const partition = partitionOf(subscription.id, 4);
    expect(await pruneFinished(store, partition, 'succeeded', nowMs, 0)).toBeUndefined();
    const key = `${partitionPrefix(store, partition)}:by_status:succeeded`;
    expect(await store.redis.zrange(key, '0', '-1')).toEqual([kept!.deliveryId]);
  });
});

describe('delete', () => {
  it('ends what was unfinished, and leaves nothing of the subscription but what retention keeps', async () => {
    const subscription = await subscribe();
    const [pending] = await deliver([subscription.id]);
    const [done] = await deliver([subscription.id]);
    await attempt(done!.deliveryId, 1, { kind: 'succeeded' });
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    const [held] = await deliver([subscription.id]);
    await deleteSubscription(store, subscription.id, nowMs, { operator: 'anna' });
    expect(
      await begin({ deliveryId: pending!.deliveryId, generation: 0, subscriptionId: subscription.id }, nowMs),
    ).toMatchObject({
      kind: 'subscription_deleted',
    });
    const removed: unknown[] = [];
    await closeSubscription(store, subscription.id, nowMs, async (_partition, jobs) => void removed.push(...jobs));
    expect(removed).toHaveLength(2);
    for (const id of [pending!.deliveryId, held!.deliveryId]) {
      expect(await one(id)).toMatchObject({ status: 'failed', failureReason: 'subscription_deleted', attemptCount: 0 });
    }
    expect((await one(done!.deliveryId)).status).toBe('succeeded');
    for (const key of await store.redis.keys(`${store.prefix}:*${subscription.id}*`)) {
      expect([key, (await store.redis.pttl(key)) > 0]).toEqual([key, true]);
    }
    expect(await deleteSubscription(store, subscription.id, nowMs, { operator: 'anna' })).toBe(false);
  });
});

describe('lists', () => {
  it('page through everything newest first, once each, whatever the filter', async () => {
    const [a, b] = [await subscribe(), await subscribe()];
    const ids: string[] = [];
    for (let i = 0; i < 30; i++) {
      if (i % 3 !== 0) nowMs += 1;
      const made = await deliver([i % 2 ? a.id : b.id]);
      ids.push(made[0]!.deliveryId);
      if (i % 5 === 0) await attempt(made[0]!.deliveryId, 1, failure, 1_000);
      if (i % 5 === 1) await attempt(made[0]!.deliveryId, 1, { kind: 'succeeded' });
    }
    const all = (await loadDeliveries(store, ids)).map((delivery) => delivery!);
    const newest = (list: typeof all) =>
      list.sort((x, y) => y.createdAtMs - x.createdAtMs || (x.id < y.id ? 1 : -1)).map(({ id }) => id);
    const pages = async (filter: Parameters<typeof listDeliveries>[1]) => {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listDeliveries(store, filter, 4, cursor);
        expect(page.items.length).toBeLessThanOrEqual(4);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return found;
    };
    expect(await pages({})).toEqual(newest(all));
    for (const status of ['pending', 'succeeded', 'failed', 'held'] as const) {
      expect(await pages({ status })).toEqual(newest(all.filter((delivery) => delivery.status === status)));
    }
    const ofA = all.filter(({ subscriptionId }) => subscriptionId === a.id);
    expect((await pages({ subscriptionId: a.id })).sort()).toEqual(ofA.map(({ id }) => id).sort());
    const failedOfA = ofA.filter(({ status }) => status === 'failed');
    expect(await pages({ subscriptionId: a.id, status: 'failed' })).toEqual(newest(failedOfA));
    const [fromMs, toMs] = [all[8]!.createdAtMs, all[3]!.createdAtMs];
    const between = all.filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs <= toMs);
    expect(await pages({ fromMs, toMs })).toEqual(newest(between));
    expect(await pages({ eventId: all[0]!.eventId })).toEqual([all[0]!.id]);
    expect(await pages({ eventId: 'evt_none' })).toEqual([]);
  });
  it('of subscriptions are by status and environment', async () => {
    const sandbox = await subscribe({ environment: 'sandbox' });
    const paused = await subscribe({ status: 'paused' });
    const idsOf = async (filter: Parameters<typeof listSubscriptions>[1]) =>
      (await listSubscriptions(store, filter, 10)).items.map(({ id }) => id).sort();
    expect(await idsOf({})).toEqual([sandbox.id, paused.id].sort());
    expect(await idsOf({ status: 'paused' })).toEqual([paused.id]);
    expect(await idsOf({ environment: 'sandbox' })).toEqual([sandbox.id]);
  });
});
