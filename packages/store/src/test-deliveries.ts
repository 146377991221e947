/** For tests of the store's scripts: a store for each test, its time, and subscriptions, events and attempts in it. */
import { afterEach, beforeEach, expect } from '@jest/globals';
import {
  type Attempt,
  addFailure,
  addSuccess,
  type CameBack,
  type DeliveryJob,
  type Event,
  type EventRef,
  eventRef,
  newAttemptRun,
  newEventId,
  newSubscriptionId,
  partitionOf,
  readJobId,
  type Verdict,
} from '@posthorn/core';
import { jobIdOf } from '@posthorn/testing';
import { interruptedFanOuts } from './events/events.ts';
import {
  type AddressCounts,
  addCounts,
  allPartitions,
  beginAttempt,
  createDeliveries,
  loadDeliveries,
  loadSubscriptions,
  newSubscription,
  parkJob,
  releaseDeliveries,
  type Store,
  type StoredSubscription,
  saveSubscription,
  storeEvent,
} from './index.ts';
import { prefixOfId, queueKey } from './keys.ts';
import { recordVerdict } from './test-attempts.ts';
import { openTestStore } from './test-store.ts';

/** A store with four partitions, new for each test. */
export let store: Store;
/** The time of the test, which it may change. */
export const time = { nowMs: 0 };
let close: () => Promise<void>;

beforeEach(async () => {
  ({ store, close } = await openTestStore(4));
  time.nowMs = Date.now();
});
afterEach(() => close());

/** Stores an active subscription. */
export async function subscribe(change: Partial<StoredSubscription> = {}): Promise<StoredSubscription> {
  const fresh = newSubscription(
    { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '', sealedSecret: 'sealed' },
    time.nowMs,
  );
  const made = { ...fresh, status: 'active' as const, takesEvents: true, ...change };
  expect(await saveSubscription(store, made)).toBe(true);
  return (await loadSubscriptions(store, [made.id]))[0]!;
}
/** The id of a subscription that would be in this partition. */
export function subscriptionIdIn(partition: number): string {
  for (;;) {
    const id = newSubscriptionId();
    if (partitionOf(id, store.partitions) === partition) return id;
  }
}
/** Up to 10 events of each partition whose fan-out counts as interrupted 15 s after `sinceMs`. */
export async function interrupted(sinceMs: number): Promise<EventRef[]> {
  const found = allPartitions(store).map((partition) => interruptedFanOuts(store, partition, sinceMs + 15_000, 10));
  return (await Promise.all(found)).flat();
}
/** An event created now. */
export function event(change: Partial<Event> = {}): Event {
  const createdAt = new Date(time.nowMs).toISOString();
  return {
    id: newEventId(time.nowMs),
    type: 'session.created',
    createdAt,
    environment: 'sandbox',
    dataJson: '{"id":"s"}',
    ...change,
  };
}
/** Stores an event and its deliveries to these subscriptions. */
export async function deliver(subscriptionIds: string[], sent = event()) {
  const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds };
  await storeEvent(store, stored);
  return await createDeliveries(store, stored);
}
export const loadOne = async (id: string) => (await loadDeliveries(store, [id]))[0]!;
export const failure: Verdict = { kind: 'failed', reason: 'timeout' };
/** Records an attempt with this outcome. */
export async function attempt(
  deliveryId: string,
  number: number,
  verdict: Verdict,
  pauseAfter = 20,
  cameBack?: CameBack,
) {
  const delivery = await loadOne(deliveryId);
  const made: Attempt = {
    number,
    startedAtMs: time.nowMs,
    durationMs: 10,
    statusCode: verdict.kind === 'succeeded' ? 200 : null,
    error: verdict.kind === 'succeeded' ? null : 'timeout',
  };
  const kept = cameBack && (() => cameBack);
  return await recordVerdict(store, {
    delivery,
    attempt: made,
    verdict,
    limits: { pauseAfter, maxAttempts: 6 },
    cameBack: kept,
  });
}

/** Reports attempts like a worker: `x` is a failed one (500), `t` a timeout, `.` a success; each takes 10 ms. */
export async function report(
  { id, url }: Pick<StoredSubscription, 'id' | 'url'>,
  attempts: string,
  longBuckets = new Map(),
  meanMs = 0,
) {
  const run: AddressCounts = { ...newAttemptRun(), url, totalMs: meanMs * attempts.length, longBuckets };
  for (const one of attempts) {
    time.nowMs += 10;
    const label = one === 't' ? 'timeout' : '500';
    if (one === '.') addSuccess(run, time.nowMs);
    else addFailure(run, { label, sinceMs: time.nowMs, deliveryId: 'dlv_1', attemptNumber: 1 });
  }
  const addresses = new Map([[id, run]]);
  const counts = { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses };
  await addCounts(store, counts, time.nowMs);
}

export const begin = (job: Parameters<typeof beginAttempt>[1], atMs = time.nowMs, dueBeforeMs = 0) =>
  beginAttempt(store, job, atMs, dueBeforeMs);
/**
 * Releases deliveries from a lane. Returns their jobs as they are in the queue, in the order in which they were put
 * into it.
 */
export async function release(lane: 'parked' | 'held' | 'overdue', subscriptionId: string, limit: number) {
  const queue = `${store.prefix}:{${partitionOf(subscriptionId, store.partitions)}}:deliveries:`;
  const waiting = async () => [
    ...(await store.redis.lrange(`${queue}wait`, 0, -1)).reverse(),
    ...(await store.redis.zrange(`${queue}prioritized`, 0, '-1')),
  ];
  const before = new Set(await waiting());
  const released = await releaseDeliveries(store, lane, subscriptionId, limit, time.nowMs);
  const added = (await waiting()).filter((id) => !before.has(id));
  expect(added).toHaveLength(released);
  return await Promise.all(
    added.map(async (id) => {
      const { name, data, priority } = await store.redis.hgetall(queue + id);
      const event = JSON.parse(data ?? '').event_id as DeliveryJob['event'];
      return { ...readJobId(id), subscriptionId: name!, event, isRetry: priority === '1' };
    }),
  );
}

/** Removes the waiting job of a delivery, as if it had been lost. */
export async function loseJob(deliveryId: string): Promise<void> {
  const key = (name: string) => queueKey(prefixOfId(store, deliveryId), name);
  expect(await store.redis.lrem(key('wait'), 0, deliveryId)).toBe(1);
  await store.redis.del(key(deliveryId));
}

/** Takes the job of a delivery and parks the delivery. Returns the lane. */
export async function park(job: DeliveryJob, nowMs = time.nowMs, dueBeforeMs = 0): Promise<string> {
  const jobId = jobIdOf(job);
  const key = (name: string) => queueKey(prefixOfId(store, job.deliveryId), name);
  await store.redis.lrem(key('wait'), 0, jobId);
  await store.redis.zrem(key('prioritized'), jobId);
  await store.redis.lpush(key('active'), jobId);
  await store.redis.set(key(`${jobId}:lock`), 'token');
  const room = () => ({ perAddress: 1, busy: '', dueBeforeMs });
  const worker = { knownEvent: () => undefined, room, parked: () => undefined };
  const lock = { jobId, token: 'token', nextToken: undefined, lockMs: 60_000, nowMs, worker };
  return (await parkJob(store, job, lock)).lane;
}
