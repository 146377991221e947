/** Time to read a page of 50 deliveries, by filter, out of few and out of many, through the console's API. */
import { randomUUID } from 'node:crypto';
import { type Attempt, DAY_MS, type Event, eventRef, newEventId, newSubscriptionId } from '@posthorn/core';
import { createSecretBox } from '@posthorn/signing';
import {
  createDeliveries,
  newSubscription,
  openStore,
  type Store,
  saveSubscription,
  storeEvent,
} from '@posthorn/store';
import { recordVerdict } from '../packages/store/src/test-attempts.ts';
import { type Bench, ENCRYPTION_KEY, inParallel, median, OPERATOR_TOKEN } from './harness.ts';

const secretBox = createSecretBox([ENCRYPTION_KEY]);
const SUBSCRIPTIONS = 10;
/** Time between the first delivery and the last. */
const SPREAD_MS = 20 * DAY_MS;
/** Failed and waiting deliveries of each 1,000; the others succeeded. */
const FAILED = 60;
const WAITING = 60;
const READS = 50;

/** Median time of a page in milliseconds, by filter. */
type PageTimes = Record<string, number>;

/** Fills Redis with `count` deliveries and reads each kind of page `READS` times. */
export async function benchLists(bench: Bench, count: number): Promise<PageTimes> {
  const prefix = `bench-${randomUUID()}`;
  const startMs = Date.now() - SPREAD_MS;
  // Reading is measured: an append-only file would only slow down the filling.
  await bench.redis.config('SET', 'appendonly', 'no');
  const { subscriptionIds, eventIds } = await fill(bench, prefix, count, startMs);
  const operator = await bench.startApp('console', { KEY_PREFIX: prefix });
  const middle = new Date(startMs + SPREAD_MS / 2).toISOString();
  const subscription = `subscription_id=${subscriptionIds[7]}`;
  const filters: Record<string, string> = {
    'no filter': '',
    subscription,
    event: `event_id=${eventIds[Math.floor(count / 2)]}`,
    'status failed': 'status=failed',
    'status succeeded': 'status=succeeded',
    'status waiting_for_retry': 'status=waiting_for_retry',
    'time: before the middle': `to=${middle}`,
    'subscription, failed': `${subscription}&status=failed`,
    'subscription, succeeded, before the middle': `${subscription}&status=succeeded&to=${middle}`,
    'subscription, waiting_for_retry': `${subscription}&status=waiting_for_retry`,
  };
  const times: PageTimes = {};
  for (const [name, query] of Object.entries(filters)) {
    const taken: number[] = [];
    // As many again, first, as a warm-up.
    for (let read = 0; read < 2 * READS; read++) taken.push(await readPage(`${operator.url}/v1/deliveries?${query}`));
    taken.splice(0, READS);
    times[name] = median(taken);
  }
  times['20th page'] = median(await deepPages(`${operator.url}/v1/deliveries`, Math.min(20, count / 50)));
  await operator.stop();
  await bench.redis.flushdb();
  return times;
}

async function readPage(url: string): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return performance.now() - startedAt;
}

async function deepPages(url: string, pages: number): Promise<number[]> {
  let cursor = '';
  for (let page = 1; page < pages; page++) {
    const response = await fetch(url + cursor, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
    cursor = `?cursor=${((await response.json()) as { next_cursor: string }).next_cursor}`;
  }
  const taken: number[] = [];
  for (let read = 0; read < READS; read++) taken.push(await readPage(url + cursor));
  return taken;
}

/** Writes directly to the store, with the functions that ingest and worker use. */
async function fill(bench: Bench, prefix: string, count: number, startMs: number) {
  const opened = openStore(
    { REDIS_URL: bench.redisUrl, KEY_PREFIX: prefix, PARTITIONS: 1, RETENTION: 30 * DAY_MS },
    { onError: (error) => console.error(error.message) },
  );
  await opened.start();
  const { store } = opened;
  const subscriptionIds: string[] = [];
  for (let i = 0; i < SUBSCRIPTIONS; i++) subscriptionIds.push(await subscribe(store, startMs));
  const eventIds: string[] = [];
  await inParallel(count, 500, async (i) => {
    const nowMs = startMs + Math.floor((SPREAD_MS * i) / count);
    eventIds[i] = await deliver(store, subscriptionIds[i % SUBSCRIPTIONS]!, i, nowMs);
  });
  await opened.stop();
  return { subscriptionIds, eventIds };
}

async function subscribe(store: Store, nowMs: number): Promise<string> {
  const fields = { url: 'https://example.com/', eventTypes: 'all', environment: 'both', description: '' } as const;
  const id = newSubscriptionId();
  const made = newSubscription({ ...fields, id, sealedSecret: secretBox.seal('whsec_1', id) }, nowMs);
  await saveSubscription(store, { ...made, status: 'active', takesEvents: true });
  return made.id;
}

async function deliver(store: Store, subscriptionId: string, i: number, nowMs: number): Promise<string> {
  const createdAt = new Date(nowMs).toISOString();
  const event: Event = {
    id: newEventId(nowMs),
    type: 'session.approved',
    createdAt,
    environment: 'sandbox',
    dataJson: '{"id":"s","status":"approved"}',
  };
  const stored = { ref: eventRef(event), event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  const answer = await storeEvent(store, stored, { withDeliveries: true });
  const [made] = 'created' in answer ? answer.created : await createDeliveries(store, stored);
  // Spread evenly over all subscriptions.
  const share = Math.floor(i / SUBSCRIPTIONS + 37 * (i % SUBSCRIPTIONS)) % 1_000;
  const ended = share >= FAILED + WAITING;
  const attempt: Attempt = {
    number: 1,
    startedAtMs: nowMs,
    durationMs: 40,
    statusCode: ended ? 200 : 500,
    error: ended ? null : 'status',
  };
  const verdict = ended
    ? ({ kind: 'succeeded' } as const)
    : share < FAILED
      ? ({ kind: 'failed', reason: 'status' } as const)
      : ({ kind: 'retry', nextAttemptAtMs: nowMs + 1_000 * DAY_MS } as const);
  const delivery = { id: made!.deliveryId, event: stored.ref, createdAtMs: nowMs };
  await recordVerdict(store, { delivery, attempt, verdict, limits: { pauseAfter: 1e9, maxAttempts: 6 } });
  return event.id;
}
