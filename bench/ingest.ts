/** Events per second and publish latency at ingest: plain, with 3 matching subscriptions of 3, and with 3 of 10,000. */
import { randomUUID } from 'node:crypto';
import {
  type Bench,
  event400,
  inParallel,
  median,
  PUBLISHER_KEY,
  percentile,
  post,
  processUsage,
  subscribeMany,
} from './harness.ts';

interface Figures {
  eventsPerS: number;
  p50Ms: number;
  p99Ms: number;
  cpuUsPerEvent: number;
}

const CONCURRENCY = 20;

export async function benchIngest(bench: Bench, count: number, rounds: number, manySubscriptions: number) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const plain = await bench.start('bench/processes/plain-ingest.ts');
  const few = await withSubscriptions(bench, receiver.url, 0);
  const many = await withSubscriptions(bench, receiver.url, manySubscriptions);
  const runs: Record<string, Figures[]> = { plain: [], none: [], three: [], threeOfMany: [] };
  for (let round = 0; round < rounds; round++) {
    runs.plain!.push(await publish(plain, count, 'session.approved'));
    runs.none!.push(await publish(few.ingest, count, 'session.expired'));
    runs.three!.push(await publish(few.ingest, count, 'session.approved'));
    runs.threeOfMany!.push(await publish(many.ingest, count, 'session.approved'));
  }
  for (const one of [plain, receiver, few.ingest, few.operator, many.ingest, many.operator]) await one.stop();
  await bench.redis.flushdb();
  const middle = (name: string) => ({
    eventsPerS: median(runs[name]!.map((run) => run.eventsPerS)),
    p50Ms: median(runs[name]!.map((run) => run.p50Ms)),
    p99Ms: median(runs[name]!.map((run) => run.p99Ms)),
    cpuUsPerEvent: median(runs[name]!.map((run) => run.cpuUsPerEvent)),
  });
  return {
    plain: middle('plain'),
    noMatch: middle('none'),
    threeOfThree: middle('three'),
    threeOfMany: middle('threeOfMany'),
  };
}

async function withSubscriptions(bench: Bench, receiverUrl: string, others: number) {
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  await subscribeMany(operator.url, receiverUrl, 3, { event_types: ['session.approved'], environment: 'sandbox' });
  await subscribeMany(operator.url, receiverUrl, others, {
    event_types: ['session.declined'],
    environment: 'production',
  });
  return { ingest, operator };
}

async function publish(
  at: { url: string; child: { pid?: number | undefined } },
  count: number,
  type: string,
): Promise<Figures> {
  const send = async () => {
    const { status, text } = await post(`${at.url}/v1/events`, PUBLISHER_KEY, event400(type));
    if (status !== 202) throw new Error(text);
  };
  await inParallel(Math.floor(count / 10), CONCURRENCY, send);
  const before = await processUsage(at.child.pid!);
  const startedAt = performance.now();
  const times = await inParallel(count, CONCURRENCY, send);
  const seconds = (performance.now() - startedAt) / 1000;
  const after = await processUsage(at.child.pid!);
  return {
    eventsPerS: count / seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    cpuUsPerEvent: (after.cpuUs - before.cpuUs) / count,
  };
}
