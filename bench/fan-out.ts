/**
 * Fan-out of one event: time until the publisher gets its response, and until the last delivery arrives, beside the
 * plain system and beside the same requests with nothing else; and what other publishers notice of large ones.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { createResolver, createSender, parseNetworks } from '@posthorn/sender';
import { measureFanOut, measureLatency } from './compare.ts';
import { type Bench, event400, inParallel, percentile } from './harness.ts';
import { ID_IN_REFERENCE, type System, startPlain, startPosthorn } from './systems.ts';

/** Pause between two large events of the disturbing publisher. */
const DISTURB_EVERY_MS = 1_000;
const SINGLE_EVERY_MS = 10;
/** Before the latency of each system is measured. */
const WARM_UP_S = 2;
/** As many as a worker has slots. */
const MAX_IN_FLIGHT = 100;

export async function benchFanOut(bench: Bench, sizes: readonly number[], rounds: number) {
  const results = [];
  for (const size of sizes) {
    const requests = await measureRequests(bench, size, rounds);
    const plain = await measured(await startPlain(bench, 'plain', size), rounds);
    const posthorn = await measured(await startPosthorn(bench, 'Posthorn', size), rounds);
    results.push({ size, requests, plain, posthorn });
  }
  return results;
}

/** No system can be faster: this process sends the requests at once, over open connections, and stores nothing. */
async function measureRequests(bench: Bench, size: number, rounds: number) {
  const receiver = await bench.start('bench/processes/arrivals.ts', { PATTERN: ID_IN_REFERENCE });
  const allowedNetworks = parseNetworks('127.0.0.0/8');
  const sender = createSender({ allowedNetworks, resolve: createResolver(), timeoutMs: 60_000, userAgent: 'bench' });
  const event = event400('session.created');
  const headers = { 'content-type': 'application/json' };
  const publishToAll = async (id: string) => {
    const body = JSON.stringify({ ...event, data: { ...event.data, reference: id } });
    await inParallel(size, MAX_IN_FLIGHT, (i) => sender.send({ url: `${receiver.url}/${i}`, headers, body }));
  };
  const figures = await measureFanOut({ name: 'the requests alone', publishToAll, fanOut: size, receiver }, rounds);
  sender.close();
  await receiver.stop();
  return figures;
}

async function measured(system: System, rounds: number) {
  const figures = await measureFanOut(system, rounds);
  await system.stop();
  return figures;
}

/**
 * Measures arrival at 100 events a second, plain and by Posthorn, and responses beside fan-outs to `size` addresses.
 */
export async function benchLatency(bench: Bench, size: number, seconds: number) {
  const plain = await startPlain(bench, 'plain', 1);
  await measureLatency(plain, WARM_UP_S);
  const plainAges = await measureLatency(plain, seconds);
  await plain.stop();
  const posthorn = await startPosthorn(bench, 'Posthorn', size);
  await measureLatency(posthorn, WARM_UP_S);
  const ages = await measureLatency(posthorn, seconds);
  const beside = await besideFanOuts(posthorn, seconds);
  await posthorn.stop();
  const of = (values: readonly number[]) => ({ p50Ms: percentile(values, 0.5), p99Ms: percentile(values, 0.99) });
  return { plain: of(plainAges), posthorn: of(ages), beside };
}

/** How long publishers of single events wait for responses, alone and beside one that publishes to all addresses. */
async function besideFanOuts(system: System, seconds: number) {
  const alone = await responses(system, seconds);
  let isOver = false;
  const disturbing = (async () => {
    while (!isOver) {
      await system.publishToAll('large');
      await pause(DISTURB_EVERY_MS);
    }
  })();
  const disturbed = await responses(system, seconds);
  isOver = true;
  await disturbing;
  return { aloneP99Ms: percentile(alone, 0.99), disturbedP99Ms: percentile(disturbed, 0.99) };
}

/**
 * Times from when each single event was due, at a fixed rate: those that are due while responses are late count too.
 */
async function responses(system: System, seconds: number): Promise<number[]> {
  const calls: Promise<number>[] = [];
  const startedAt = performance.now();
  const respondedAfter = async (dueAt: number) => {
    await system.publish('single');
    return performance.now() - dueAt;
  };
  for (let dueAt = startedAt; dueAt < startedAt + seconds * 1000; dueAt += SINGLE_EVERY_MS) {
    await pause(Math.max(0, dueAt - performance.now()));
    calls.push(respondedAfter(dueAt));
  }
  return await Promise.all(calls);
}
