/**
 * Many deliveries due at once: retries due in the same second, retries an hour overdue, held deliveries after a resume
 * of one or of many addresses.
 */
import { randomUUID } from 'node:crypto';
import { DAY_MS, eventRef, HOUR_MS, newEventId } from '@posthorn/core';
import { createJobQueues } from '@posthorn/queue';
import { openStore, recordFailure, type Store, storeEvent } from '@posthorn/store';
import { addJobs } from '../packages/queue/src/test-add-jobs.ts';
import {
  type Arrival,
  type Bench,
  type EventType,
  type Health,
  OPERATOR_TOKEN,
  percentile,
  post,
  publishMany,
  readArrivals,
  singlePublisher,
  subscribe,
  timedEvent,
  until,
  watchHealth,
} from './harness.ts';

/** Number of addresses that the retries are spread over. */
const ADDRESSES = 40;
const LATE_ADDRESSES = 10;
/** Addresses that are resumed together. */
const RESUMED_ADDRESSES = 200;
const HEALTHY = 20;
const HEALTHY_PATH = 'good-healthy';

interface Recovery {
  atOnce: (Health & { workers: number; firstMs: number; p50Ms: number; lastMs: number; healthyP99Ms: number })[];
  late: Health & { seconds: number; mostInASecond: number; healthyP99Ms: number; healthyAloneP99Ms: number };
  resumed: Health & { seconds: number; mostInASecond: number };
  resumedTogether: Recovery['late'];
}

export async function benchRecovery(bench: Bench, atOnce: number, late: number, held: number): Promise<Recovery> {
  return {
    atOnce: [await sameSecond(bench, atOnce, 1), await sameSecond(bench, atOnce, 2)],
    late: await hourLate(bench, late),
    resumed: await resume(bench, held),
    resumedTogether: await resumeMany(bench, 2 * held),
  };
}

/** Retries of many addresses, all due at the same moment, while other addresses have traffic. */
async function sameSecond(bench: Bench, count: number, workers: number): Promise<Recovery['atOnce'][number]> {
  const on = await open(bench);
  const addresses = await on.listen('good', ADDRESSES, 'session.expired');
  await on.listen(HEALTHY_PATH, HEALTHY, 'session.approved');
  const dueAtMs = Date.now() + 5_000 + count;
  await on.makeRetries(addresses, count, dueAtMs);
  const running = await Promise.all(Array.from({ length: workers }, () => bench.startApp('worker', on.env)));
  await until('the retries are due', async () => Date.now() >= dueAtMs, 60_000);
  const health = watchHealth([...running, on.ingest, on.operator]);
  const { others, healthyP99Ms } = await besideHealthy(on, ({ length }) => length >= count);
  const figures = await health.stop();
  for (const one of running) await one.stop();
  await on.close();
  const ages = others.map(({ atMs }) => atMs - dueAtMs);
  const [firstMs, p50Ms, lastMs] = [0, 0.5, 1].map((share) => percentile(ages, share)) as [number, number, number];
  return { ...figures, workers, firstMs, p50Ms, lastMs, healthyP99Ms };
}

/** Retries that were due an hour ago, as after an outage of Redis, while other addresses have traffic. */
async function hourLate(bench: Bench, count: number): Promise<Recovery['late']> {
  const on = await open(bench);
  const addresses = await on.listen('good', LATE_ADDRESSES, 'session.expired');
  await on.listen(HEALTHY_PATH, HEALTHY, 'session.approved');
  const before = await bench.startApp('worker', on.env);
  const endsAt = Date.now() + 10_000;
  const alone = await besideHealthy(on, () => Date.now() > endsAt);
  // A running worker would take first jobs that retries are to replace.
  await before.stop();
  await on.makeRetries(addresses, count, Date.now() - HOUR_MS);
  const worker = await bench.startApp('worker', on.env);
  const health = watchHealth([worker, on.ingest, on.operator]);
  const { others, healthyP99Ms } = await besideHealthy(on, ({ length }) => length >= count);
  const figures = await health.stop();
  await worker.stop();
  await on.close();
  return { ...figures, ...pace(others), healthyP99Ms, healthyAloneP99Ms: alone.healthyP99Ms };
}

/**
 * Publishes ten events a second to each of the healthy addresses until enough has arrived elsewhere. Resolves with what
 * arrived, and the time from publishing to arrival of the healthy addresses' events.
 */
async function besideHealthy(
  on: Awaited<ReturnType<typeof open>>,
  enough: (others: Arrival[]) => boolean,
): Promise<{ others: Arrival[]; healthyP99Ms: number }> {
  const others: Arrival[] = [];
  const agesMs: number[] = [];
  const sent: Promise<unknown>[] = [];
  const read = async () => {
    for (const arrival of await readArrivals(on.receiver)) {
      if (arrival.path.startsWith(`/${HEALTHY_PATH}`)) agesMs.push(arrival.ageMs);
      else others.push(arrival);
    }
  };
  while (!enough(others)) {
    sent.push(on.publish('session.approved'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await read();
  }
  await Promise.all(sent);
  // Those that are late count too.
  const allArrived = async () => {
    await read();
    return agesMs.length >= sent.length * HEALTHY;
  };
  await until('all to the healthy addresses', allArrived);
  return { others, healthyP99Ms: percentile(agesMs, 0.99) };
}

/** Releases held deliveries of one address after its resume. */
async function resume(bench: Bench, count: number): Promise<Recovery['resumed']> {
  const on = await open(bench);
  const [id] = await on.listen('good', 1, 'session.expired');
  const operate = (action: string) =>
    post(`${on.operator.url}/v1/subscriptions/${id}/${action}`, OPERATOR_TOKEN, undefined);
  await operate('pause');
  await publishMany(on.ingest.url, count, () => timedEvent('session.expired'));
  const worker = await bench.startApp('worker', on.env);
  const health = watchHealth([worker, on.ingest, on.operator]);
  await operate('resume');
  const arrivals = await on.arrivals(count);
  const figures = await health.stop();
  await worker.stop();
  await on.close();
  return { ...figures, ...pace(arrivals) };
}

/** Releases what is held for many addresses after they are resumed together, while other addresses have traffic. */
async function resumeMany(bench: Bench, count: number): Promise<Recovery['resumedTogether']> {
  const on = await open(bench);
  const ids = await on.listen('good', RESUMED_ADDRESSES, 'session.expired');
  await on.listen(HEALTHY_PATH, HEALTHY, 'session.approved');
  const operate = (path: string, body?: object) =>
    post(`${on.operator.url}/v1/subscriptions/${path}`, OPERATOR_TOKEN, body);
  for (const id of ids) await operate(`${id}/pause`);
  await publishMany(on.ingest.url, count / RESUMED_ADDRESSES, () => timedEvent('session.expired'));
  const worker = await bench.startApp('worker', on.env);
  const endsAt = Date.now() + 10_000;
  const alone = await besideHealthy(on, () => Date.now() > endsAt);
  const health = watchHealth([worker, on.ingest, on.operator]);
  await operate('resume', { subscription_ids: ids });
  const { others, healthyP99Ms } = await besideHealthy(on, ({ length }) => length >= count);
  const figures = await health.stop();
  await worker.stop();
  await on.close();
  return { ...figures, ...pace(others), healthyP99Ms, healthyAloneP99Ms: alone.healthyP99Ms };
}

/** Time from the first arrival to the last, and the most arrivals of one address within any second. */
function pace(arrivals: Arrival[]): { seconds: number; mostInASecond: number } {
  const byPath = new Map<string, number[]>();
  for (const { path, atMs } of arrivals) byPath.set(path, [...(byPath.get(path) ?? []), atMs]);
  let most = 0;
  for (const times of byPath.values()) {
    times.sort((a, b) => a - b);
    for (let from = 0, to = 0; to < times.length; to++) {
      while (times[to]! - times[from]! >= 1_000) from += 1;
      most = Math.max(most, to - from + 1);
    }
  }
  const all = arrivals.map(({ atMs }) => atMs).sort((a, b) => a - b);
  return { seconds: ((all.at(-1) ?? 0) - (all[0] ?? 0)) / 1_000, mostInASecond: most };
}

/** Starts ingest, console and a receiver under their own key prefix, and opens a store to prepare records. */
async function open(bench: Bench) {
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const receiver = await bench.start('bench/processes/mixed-receiver.ts', { HOST: '0.0.0.0' });
  let hosts = 0;
  const ingest = await bench.startApp('ingest', env);
  const operator = await bench.startApp('console', env);
  const onError = (error: Error) => console.error(error.message);
  const opened = openStore(
    { REDIS_URL: bench.redisUrl, KEY_PREFIX: env.KEY_PREFIX, PARTITIONS: 1, RETENTION: 30 * DAY_MS },
    { onError },
  );
  await opened.start();
  const { store, partitionPrefixes } = opened;
  const publisher = singlePublisher(ingest.url);
  const jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes, onError });
  return {
    env,
    receiver,
    ingest,
    operator,
    async listen(name: string, count: number, type: string): Promise<string[]> {
      const ids: string[] = [];
      for (let i = 0; i < count; i++) {
        const fields = { event_types: [type], environment: 'sandbox' };
        ids.push(await subscribe(operator.url, `${onOwnHost(receiver.url, hosts++)}/${name}-${i}`, fields));
      }
      return ids;
    },
    publish: (type: EventType) => publisher.publish(timedEvent(type)),
    /** Makes deliveries whose first attempt has failed, with the functions that ingest and worker use. */
    async makeRetries(subscriptionIds: string[], count: number, dueAtMs: number): Promise<void> {
      const jobs = await Promise.all(
        Array.from({ length: count }, (_, i) => failOnce(store, subscriptionIds[i % subscriptionIds.length]!, dueAtMs)),
      );
      // A delay starts when its job is added, so it is computed anew for every few jobs.
      for (let start = 0; start < count; start += 100) {
        const delayMs = Math.max(1, dueAtMs - Date.now());
        const some = jobs.slice(start, start + 100).map((job) => ({ ...job, delayMs }));
        // In place of the first job, which no worker has taken.
        await Promise.all(some.map(({ deliveryId }) => jobQueues.all[0]!.remove(deliveryId)));
        await addJobs(jobQueues, 0, some);
      }
    },
    /** Waits until `count` deliveries have arrived. */
    async arrivals(count: number): Promise<Arrival[]> {
      const arrived: Arrival[] = [];
      await until(
        `${count} arrivals`,
        async () => {
          arrived.push(...(await readArrivals(receiver)));
          await new Promise((resolve) => setTimeout(resolve, 200));
          return arrived.length >= count;
        },
        900_000,
      );
      return arrived;
    },
    async close(): Promise<void> {
      await publisher.close();
      await jobQueues.close();
      await opened.stop();
      for (const one of [ingest, operator, receiver]) await one.stop();
      await bench.redis.flushdb();
    },
  };
}

/** The receiver at its own loopback IP, as each customer has its own host. */
function onOwnHost(receiverUrl: string, number: number): string {
  const url = new URL(receiverUrl);
  url.hostname = `127.0.2.${number + 1}`;
  return url.origin;
}

async function failOnce(store: Store, subscriptionId: string, dueAtMs: number) {
  const nowMs = Date.now();
  const { type, environment, data } = timedEvent('session.expired', dueAtMs);
  const of = {
    id: newEventId(nowMs),
    type: type as 'session.expired',
    createdAt: new Date(nowMs).toISOString(),
    environment: environment as 'sandbox',
    dataJson: JSON.stringify(data),
  };
  const stored = { ref: eventRef(of), event: of, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  const answer = await storeEvent(store, stored, { withDeliveries: true });
  if (!('created' in answer)) throw new Error('The event already exists');
  const { deliveryId } = answer.created[0]!;
  const attempt = { number: 1, startedAtMs: nowMs, durationMs: 10, statusCode: 500, error: 'status' } as const;
  await recordFailure(store, {
    delivery: { id: deliveryId, event: stored.ref, createdAtMs: nowMs },
    attempt,
    verdict: { kind: 'retry', nextAttemptAtMs: dueAtMs },
    limits: { pauseAfter: 20, maxAttempts: 6 },
  });
  return { deliveryId, generation: 0, subscriptionId, event: stored.ref, isRetry: true };
}
