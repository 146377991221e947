/**
 * Fan-out of one event: time until the publisher gets its response, and until the last delivery arrives, beside the plain system; and what other
 * publishers notice of large ones.
 */

import { measureFanOut, measureLatency } from './compare.ts';
import { type Bench, percentile } from './harness.ts';
import { type System, startPlain, startPosthorn } from './systems.ts';

/** Pause between two large events of the disturbing publisher. */
const DISTURB_EVERY_MS = 1_000;

export async function benchFanOut(bench: Bench, sizes: readonly number[], rounds: number) {
  const results = [];
  for (const size of sizes) {
    const plain = await measured(await startPlain(bench, 'plain', size), rounds);
    const posthorn = await measured(await startPosthorn(bench, 'Posthorn', size), rounds);
    results.push({ size, plain, posthorn });
  }
  return results;
}

async function measured(system: System, rounds: number) {
  const figures = await measureFanOut(system, rounds);
  await system.stop();
  return figures;
}

/** From publishing to arrival at 100 events a second: plain, Posthorn, and Posthorn beside one event to `size` addresses a second. */
export async function benchLatency(bench: Bench, size: number, seconds: number) {
  const plain = await startPlain(bench, 'plain', 1);
  const plainAges = await measureLatency(plain, seconds);
  await plain.stop();
  const posthorn = await startPosthorn(bench, 'Posthorn', size);
  await measureLatency(posthorn, 2);
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
      await new Promise((resolve) => setTimeout(resolve, DISTURB_EVERY_MS));
    }
  })();
  const disturbed = await responses(system, seconds);
  isOver = true;
  await disturbing;
  return { aloneP99Ms: percentile(alone, 0.99), disturbedP99Ms: percentile(disturbed, 0.99) };
}

/** One publisher that waits for each response, and a pause of 10 ms. */
async function responses(system: System, seconds: number): Promise<number[]> {
  const times: number[] = [];
  for (const endsAt = performance.now() + seconds * 1000; performance.now() < endsAt; ) {
    const startedAt = performance.now();
    await system.publish('single');
    times.push(performance.now() - startedAt);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return times;
}
