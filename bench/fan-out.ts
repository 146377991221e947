/** Fan-out of one event to 1,000 subscriptions: time until the publisher gets its response, and until the last delivery arrives. */
import { randomUUID } from 'node:crypto';
import { type Bench, event400, median, PUBLISHER_KEY, post, subscribeMany, until } from './harness.ts';

export async function benchFanOut(bench: Bench, subscriptions: number, rounds: number) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const apps = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  const [ingest, operator] = apps as [(typeof apps)[0], (typeof apps)[0]];
  await subscribeMany(operator.url, receiver.url, subscriptions);
  const worker = await bench.startApp('worker', env);
  const arrived = async () => Number(await (await fetch(`${receiver.url}/count`)).text());
  const publishMs: number[] = [];
  const allArrivedMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = await arrived();
    const startedAt = performance.now();
    const { text } = await post(`${ingest.url}/v1/events`, PUBLISHER_KEY, event400());
    if (!text.includes(`"deliveries":${subscriptions}`)) throw new Error(text);
    publishMs.push(performance.now() - startedAt);
    await until('all to have it', async () => (await arrived()) >= before + subscriptions);
    allArrivedMs.push(performance.now() - startedAt);
  }
  for (const one of [worker, ...apps, receiver]) await one.stop();
  await bench.redis.flushdb();
  return { publishMs: median(publishMs), allArrivedMs: median(allArrivedMs) };
}
