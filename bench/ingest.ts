/**
 * Events per second and publish latency of ingest: plain, with 1 of 1 and 3 of 3 subscriptions matching, with 3 of
 * 10,000, with more publishers, and with a replica.
 */
import { randomUUID } from 'node:crypto';
import { type Bench, type EventType, event400, medians, percentile, processUsage, subscribeMany } from './harness.ts';
import { createRawPublishers } from './raw-publishers.ts';

interface Figures {
  eventsPerS: number;
  p50Ms: number;
  p99Ms: number;
  cpuUsPerEvent: number;
  redisCpuUsPerEvent: number;
}

const PUBLISHERS = 20;
/** With so many, events wait nearly all the time, so that ingest is hardly ever idle. */
const MANY_PUBLISHERS = 64;
/** Rounds of each process before the first that counts: V8 compiles until about 20,000 events. */
const WARM_UP_ROUNDS = 5;

export async function benchIngest(bench: Bench, count: number, rounds: number, manySubscriptions: number) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const plain = await bench.startPlain('ingest');
  const single = await withSubscriptions(bench, receiver.url, 0, {}, 1);
  const few = await withSubscriptions(bench, receiver.url, 0);
  const many = await withSubscriptions(bench, receiver.url, manySubscriptions);
  const runs: Record<'plain' | 'plainMany' | 'none' | 'one' | 'oneMany' | 'three' | 'threeOfMany', Figures[]> = {
    plain: [],
    plainMany: [],
    none: [],
    one: [],
    oneMany: [],
    three: [],
    threeOfMany: [],
  };
  for (const at of [plain, single.ingest, few.ingest, many.ingest]) await warmUp(bench, at, count);
  for (let round = 0; round < rounds; round++) {
    runs.plain.push(await publish(bench, plain, count, 'session.approved'));
    runs.none.push(await publish(bench, few.ingest, count, 'session.expired'));
    runs.one.push(await publish(bench, single.ingest, count, 'session.approved'));
    runs.three.push(await publish(bench, few.ingest, count, 'session.approved'));
    runs.threeOfMany.push(await publish(bench, many.ingest, count, 'session.approved'));
    runs.plainMany.push(await publish(bench, plain, count, 'session.approved', MANY_PUBLISHERS));
    runs.oneMany.push(await publish(bench, single.ingest, count, 'session.approved', MANY_PUBLISHERS));
  }
  for (const one of [
    plain,
    receiver,
    single.ingest,
    single.operator,
    few.ingest,
    few.operator,
    many.ingest,
    many.operator,
  ])
    await one.stop();
  await bench.redis.flushdb();
  return {
    plain: medians(runs.plain),
    plainMany: medians(runs.plainMany),
    noMatch: medians(runs.none),
    oneOfOne: medians(runs.one),
    oneOfOneMany: medians(runs.oneMany),
    threeOfThree: medians(runs.three),
    threeOfMany: medians(runs.threeOfMany),
  };
}

/** The same with a replica of Redis: ingest waits for it, or does not. */
export async function benchAckReplicas(bench: Bench, count: number, rounds: number) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const replica = await bench.startReplica();
  const waits = await withSubscriptions(bench, receiver.url, 0, { ACK_REPLICAS: '1' });
  const waitsNot = await withSubscriptions(bench, receiver.url, 0);
  const runs: Record<'waitsNot' | 'waits', Figures[]> = { waitsNot: [], waits: [] };
  for (const at of [waits.ingest, waitsNot.ingest]) await warmUp(bench, at, count);
  for (let round = 0; round < rounds; round++) {
    runs.waitsNot.push(await publish(bench, waitsNot.ingest, count, 'session.approved'));
    runs.waits.push(await publish(bench, waits.ingest, count, 'session.approved'));
  }
  for (const one of [receiver, waits.ingest, waits.operator, waitsNot.ingest, waitsNot.operator]) await one.stop();
  await replica.stop();
  await bench.redis.flushdb();
  return { waitsNot: medians(runs.waitsNot), waits: medians(runs.waits) };
}

async function withSubscriptions(
  bench: Bench,
  receiverUrl: string,
  others: number,
  settings: Record<string, string> = {},
  matching = 3,
) {
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, ...settings };
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  await subscribeMany(operator.url, receiverUrl, matching, {
    event_types: ['session.approved'],
    environment: 'sandbox',
  });
  await subscribeMany(operator.url, receiverUrl, others, {
    event_types: ['session.declined'],
    environment: 'production',
  });
  return { ingest, operator };
}

async function warmUp(bench: Bench, at: Parameters<typeof publish>[1], count: number): Promise<void> {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await publish(bench, at, count, 'session.approved');
}

/**
 * Publishes `count` events, after a tenth as many to warm up. The publishers need far less CPU than what is measured.
 */
async function publish(
  bench: Bench,
  at: { url: string; child: { pid?: number | undefined } },
  count: number,
  type: EventType,
  connections = PUBLISHERS,
): Promise<Figures> {
  const publishers = createRawPublishers(
    at.url,
    connections,
    Array.from({ length: count }, () => event400(type)),
  );
  await publishers.connect();
  await publishers.publish(Math.floor(count / 10));
  const redisBeforeUs = await bench.redisCpuUs();
  const before = await processUsage(at.child.pid!);
  const startedAt = performance.now();
  const times = await publishers.publish(count);
  const seconds = (performance.now() - startedAt) / 1000;
  const after = await processUsage(at.child.pid!);
  const redisAfterUs = await bench.redisCpuUs();
  publishers.close();
  return {
    eventsPerS: count / seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    cpuUsPerEvent: (after.cpuUs - before.cpuUs) / count,
    redisCpuUsPerEvent: (redisAfterUs - redisBeforeUs) / count,
  };
}
