/** What healthy addresses notice of bad ones: how old events are when they arrive, without and with a tenth of the addresses bad. */
import { randomUUID } from 'node:crypto';
import {
  type Bench,
  PUBLISHER_KEY,
  percentile,
  post,
  publishMany,
  readArrivals,
  subscribe,
  timedEvent,
} from './harness.ts';

const HEALTHY = 45;
const BAD = 5;
/** Each event goes to every address. */
const EVENTS_PER_S = 12;

export interface Latency {
  p50Ms: number;
  p99Ms: number;
  arrivals: number;
}

export interface Isolation {
  alone: Latency;
  hanging: Latency;
  slow: Latency;
  backlog: Latency;
  burst: Latency;
}

/** Each for `seconds`, after as long to settle. One dead address has `backlog` deliveries waiting before, then `burst` all at once meanwhile. */
export async function benchIsolation(
  bench: Bench,
  seconds: number,
  backlog: number,
  burst: number,
): Promise<Isolation> {
  return {
    alone: await measure(bench, [], seconds, 0),
    hanging: await measure(
      bench,
      Array.from({ length: BAD }, (_, i) => `/hang-${i}`),
      seconds,
      0,
    ),
    slow: await measure(
      bench,
      Array.from({ length: BAD }, (_, i) => `/slow-${i}`),
      seconds,
      0,
    ),
    backlog: await measure(bench, ['/dead'], seconds, backlog),
    burst: await measure(bench, ['/dead'], seconds, 0, burst),
  };
}

async function measure(bench: Bench, bad: string[], seconds: number, backlog: number, burst = 0): Promise<Latency> {
  const receiver = await bench.start('bench/processes/mixed-receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const ingest = await bench.startApp('ingest', env);
  const operator = await bench.startApp('console', env);
  const listen = (path: string, type: string) =>
    subscribe(operator.url, receiver.url + path, { event_types: [type], environment: 'sandbox' });
  for (let i = 0; i < HEALTHY; i++) await listen(`/good-${i}`, 'session.approved');
  for (const path of bad) await listen(path, backlog + burst > 0 ? 'session.expired' : 'session.approved');
  const worker = await bench.startApp('worker', env);
  await publishMany(ingest.url, 'session.expired', backlog);
  const read = async () => (await readArrivals(receiver)).map(({ ageMs }) => ageMs);
  const publishFor = async (ms: number) => {
    const sent: Promise<unknown>[] = [];
    for (const endsAt = Date.now() + ms; Date.now() < endsAt; ) {
      sent.push(post(`${ingest.url}/v1/events`, PUBLISHER_KEY, timedEvent('session.approved')));
      await new Promise((resolve) => setTimeout(resolve, 1_000 / EVENTS_PER_S));
    }
    await Promise.all(sent);
  };
  // The first half shows the worker what kind each address is; the second is measured.
  await publishFor(seconds * 1_000);
  await read();
  await Promise.all([publishFor(seconds * 1_000), publishMany(ingest.url, 'session.expired', burst)]);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const ages = await read();
  for (const one of [worker, operator, ingest, receiver]) await one.stop();
  await bench.redis.flushdb();
  return { p50Ms: percentile(ages, 0.5), p99Ms: percentile(ages, 0.99), arrivals: ages.length };
}
