/**
 * How bad addresses affect healthy ones: the age of events at arrival, with no bad addresses and with a tenth of them
 * bad.
 */
import { randomUUID } from 'node:crypto';
import { healthKey } from '../packages/store/src/keys.ts';
import {
  type Bench,
  type BenchProcess,
  percentile,
  publishMany,
  readArrivals,
  singlePublisher,
  subscribe,
  timedEvent,
  until,
} from './harness.ts';

const HEALTHY = 45;
const BAD = 5;
const HOSTS = 12;
const UNKNOWN_ON_EACH = 10;
const ON_ONE_HOST = 300;
const BESIDE_START = 400;
/** Each event goes to every address. */
const EVENTS_PER_S = 12;

export interface Latency {
  p50Ms: number;
  p99Ms: number;
  arrivals: number;
  /** Maximum number of concurrent requests to a bad host. */
  mostInFlightAtBad?: number;
}

export interface Isolation {
  alone: Latency;
  hanging: Latency;
  slow: Latency;
  backlog: Latency;
  burst: Latency;
  /** Addresses on 12 hosts that respond fast and then all hang, when the measured part begins. */
  turning: Latency;
  /** 120 addresses on 12 hosts that never respond, which the worker does not know when the measured part begins. */
  unknown: Latency;
  /**
   * A worker that has just started, beside 400 addresses on 400 hosts that never respond and had no attempt before. An
   * earlier worker has reached the healthy ones.
   */
  besideNew: Latency;
  /** The same, but the last attempts to the 400 timed out. */
  besideFailing: Latency;
  /** The same, but none of all these addresses had an attempt before. */
  allNew: Latency;
  /** 300 addresses on one host that never responds. */
  oneHost: Latency;
  /** Seconds from the start of a worker until each of many addresses, which respond at once, has its event. */
  started: { addresses: number; unknownS: number; slowBeforeS: number };
}

/**
 * Runs each case for `seconds`, all but one after as long a warm-up. One dead address starts with `backlog` deliveries;
 * another gets `burst` at once.
 */
export async function benchIsolation(
  bench: Bench,
  seconds: number,
  backlog: number,
  burst: number,
  addresses: number,
): Promise<Isolation> {
  return {
    alone: await measure(bench, [], seconds),
    hanging: await measure(
      bench,
      Array.from({ length: BAD }, (_, i) => `/hang-${i}`),
      seconds,
    ),
    slow: await measure(
      bench,
      Array.from({ length: BAD }, (_, i) => `/slow-${i}`),
      seconds,
    ),
    backlog: await measure(bench, ['/dead'], seconds, { backlog }),
    burst: await measure(bench, ['/dead'], seconds, { burst }),
    turning: await measureTurning(bench, seconds),
    unknown: await measureUnknown(bench, seconds),
    besideNew: await measureStarted(bench, seconds, { healthy: true }),
    besideFailing: await measureStarted(bench, seconds, { healthy: true, failing: true }),
    allNew: await measureStarted(bench, seconds, {}),
    oneHost: await measureOneHost(bench, seconds),
    started: {
      addresses,
      unknownS: await measureFirstEvents(bench, addresses, false),
      slowBeforeS: await measureFirstEvents(bench, addresses, true),
    },
  };
}

/** Receivers on 12 loopback IPs, each a separate host and IP. */
async function startHosts(bench: Bench): Promise<BenchProcess[]> {
  const receivers: BenchProcess[] = [];
  for (let i = 0; i < HOSTS; i++) {
    receivers.push(await bench.start('bench/processes/mixed-receiver.ts', { HOST: `127.0.1.${i + 1}` }));
  }
  return receivers;
}

async function measureUnknown(bench: Bench, seconds: number): Promise<Latency> {
  const receivers = await startHosts(bench);
  const urls = receivers.flatMap(({ url }) => Array.from({ length: UNKNOWN_ON_EACH }, (_, i) => `${url}/hang-${i}`));
  const latency = await measure(bench, urls, seconds, { burst: 1 });
  for (const receiver of receivers) await receiver.stop();
  return latency;
}

async function measureStarted(bench: Bench, seconds: number, known: Known): Promise<Latency> {
  const receiver = await bench.start('bench/processes/mixed-receiver.ts', { HOST: '0.0.0.0' });
  const urls = urlsOnHosts(receiver, BESIDE_START, 'hang');
  const latency = await measure(bench, urls, seconds, { isRare: true, fromStart: known });
  await receiver.stop();
  return latency;
}

/** Addresses on as many loopback IPs. The receiver has to listen on all. */
function urlsOnHosts(receiver: BenchProcess, count: number, path: string): string[] {
  const { port } = new URL(receiver.url);
  return Array.from({ length: count }, (_, i) => `http://127.0.${2 + (i >> 7)}.${1 + (i & 127)}:${port}/${path}-${i}`);
}

/** `slowBefore`: an earlier worker saw that attempts to these addresses time out. */
async function measureFirstEvents(bench: Bench, addresses: number, slowBefore: boolean): Promise<number> {
  const receiver = await bench.start('bench/processes/mixed-receiver.ts', { HOST: '0.0.0.0' });
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const ingest = await bench.startApp('ingest', env);
  const operator = await bench.startApp('console', env);
  for (const url of urlsOnHosts(receiver, addresses, 'good')) {
    const id = await subscribe(operator.url, url, { event_types: ['session.approved'], environment: 'sandbox' });
    if (slowBefore) await markSlow(bench, env.KEY_PREFIX, id);
  }
  await publishMany(ingest.url, 1, () => timedEvent('session.approved'));
  const startedAtMs = Date.now();
  const worker = await bench.startApp('worker', env);
  let arrived = 0;
  await until('all arrive', async () => {
    arrived += (await readArrivals(receiver)).length;
    return arrived >= addresses;
  });
  const tookS = (Date.now() - startedAtMs) / 1_000;
  for (const one of [worker, operator, ingest, receiver]) await one.stop();
  await bench.redis.flushdb();
  return tookS;
}

/** Stores what a worker does after an attempt that timed out. */
async function markSlow(bench: Bench, prefix: string, subscriptionId: string): Promise<void> {
  await bench.redis.hset(healthKey(`${prefix}:{0}`, subscriptionId), { q: 1, m: 8_000 });
}

async function measureTurning(bench: Bench, seconds: number): Promise<Latency> {
  const receivers = await startHosts(bench);
  const urls = receivers.map(({ url }) => `${url}/turn`);
  const turn = async () => {
    await Promise.all(receivers.map(({ url }) => fetch(`${url}/turn`)));
  };
  const latency = await measure(bench, urls, seconds, { beforeMeasured: turn });
  for (const receiver of receivers) await receiver.stop();
  return latency;
}

async function measureOneHost(bench: Bench, seconds: number): Promise<Latency> {
  const receiver = await bench.start('bench/processes/mixed-receiver.ts', { HOST: '127.0.1.1' });
  const urls = Array.from({ length: ON_ONE_HOST }, (_, i) => `${receiver.url}/hang-${i}`);
  const latency = await measure(bench, urls, seconds, { isRare: true });
  latency.mostInFlightAtBad = (await (await fetch(`${receiver.url}/most-in-flight`)).json()) as number;
  await receiver.stop();
  return latency;
}

/** Of which addresses Redis knows attempts before the measured worker starts. */
interface Known {
  healthy?: boolean;
  failing?: boolean;
}

interface Load {
  /** Deliveries that wait for the bad address at the start. */
  backlog?: number;
  /** Events for the bad addresses that are published all at once. */
  burst?: number;
  /** The bad addresses get one event a second instead of as many as the healthy ones. */
  isRare?: boolean;
  /** Measures from the start of the worker, in place of a warm-up. */
  fromStart?: Known;
  beforeMeasured?: () => Promise<void>;
}

/** `bad`: paths of the healthy addresses' receiver, or urls of others. */
async function measure(
  bench: Bench,
  bad: string[],
  seconds: number,
  { backlog = 0, burst = 0, isRare = false, fromStart, beforeMeasured }: Load = {},
): Promise<Latency> {
  const receiver = await bench.start('bench/processes/mixed-receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const ingest = await bench.startApp('ingest', env);
  const operator = await bench.startApp('console', env);
  const listen = (path: string, type: string) =>
    subscribe(operator.url, URL.parse(path, receiver.url)!.href, { event_types: [type], environment: 'sandbox' });
  for (let i = 0; i < HEALTHY; i++) await listen(`/good-${i}`, 'session.approved');
  const badType = backlog + burst > 0 || isRare ? 'session.expired' : 'session.approved';
  for (const path of bad) {
    const id = await listen(path, badType);
    if (fromStart?.failing) await markSlow(bench, env.KEY_PREFIX, id);
  }
  let worker = await bench.startApp('worker', env);
  await publishMany(ingest.url, backlog, () => timedEvent('session.expired'));
  /** The ages of so many arrivals, once all are there, however late. */
  const readAll = async (count: number) => {
    const ages: number[] = [];
    const allArrived = async () => {
      for (const { ageMs } of await readArrivals(receiver)) ages.push(ageMs);
      return ages.length >= count;
    };
    await until('all to the healthy addresses', allArrived);
    return ages;
  };
  const publisher = singlePublisher(ingest.url);
  /** Resolves with the number of deliveries to healthy addresses. */
  const publishFor = async (ms: number) => {
    const sent: Promise<unknown>[] = [];
    let count = 0;
    for (const endsAt = Date.now() + ms; Date.now() < endsAt; ) {
      // Before the others, so that a worker that has just started meets the bad addresses first.
      if (isRare && count % EVENTS_PER_S === 0) await publisher.publish(timedEvent('session.expired'));
      sent.push(publisher.publish(timedEvent('session.approved')));
      count += 1;
      await new Promise((resolve) => setTimeout(resolve, 1_000 / EVENTS_PER_S));
    }
    await Promise.all(sent);
    return count * HEALTHY;
  };
  // In the first half the worker learns how each address behaves; the second half is measured.
  if (!fromStart) await readAll(await publishFor(seconds * 1_000));
  else if (fromStart.healthy) {
    await publisher.publish(timedEvent('session.approved'));
    await readAll(HEALTHY);
    await worker.stop();
    worker = await bench.startApp('worker', env);
  }
  await beforeMeasured?.();
  const [count] = await Promise.all([
    publishFor(seconds * 1_000),
    publishMany(ingest.url, burst, () => timedEvent('session.expired')),
  ]);
  const ages = await readAll(count);
  await publisher.close();
  for (const one of [worker, operator, ingest, receiver]) await one.stop();
  await bench.redis.flushdb();
  return { p50Ms: percentile(ages, 0.5), p99Ms: percentile(ages, 0.99), arrivals: ages.length };
}
