/** For tests of the store's scripts: a store for each test, its time, and subscriptions, events and attempts in it. */
import { afterEach, beforeEach, expect } from '@jest/globals';
import {
  type Attempt,
  type CameBack,
  type DeliveryJob,
  type Event,
  eventRef,
  newEventId,
  type Verdict,
} from '@posthorn/core';
import {
  beginAttempt,
  createDeliveries,
  loadDeliveries,
  loadSubscriptions,
  newSubscription,
  parkDelivery,
  recordAttempt,
  type Store,
  type StoredSubscription,
  saveSubscription,
  storeEvent,
} from './index.ts';
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
  return await recordAttempt(store, delivery, made, verdict, { pauseAfter, maxAttempts: 6 }, kept);
}

export const begin = (job: Parameters<typeof beginAttempt>[1], atMs = time.nowMs, dueBeforeMs = 0) =>
  beginAttempt(store, job, atMs, dueBeforeMs);
export const park = (job: DeliveryJob, atMs = time.nowMs, dueBeforeMs = 0) =>
  parkDelivery(store, job, atMs, dueBeforeMs);
