/** Redis memory of a pending and of a finished delivery with its event, and the memory of a worker over a long run. */
import { randomUUID } from 'node:crypto';
import { type Bench, countOf, event400, processUsage, publishMany, subscribeMany, until } from './harness.ts';
import { bytesByKind, rowsOf } from './key-bytes.ts';

/**
 * One event of 400 bytes to one address, `count` times: nothing is shared, so each delivery carries the whole cost of
 * its event.
 */
export async function benchMemory(bench: Bench, count: number, longRun: number) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = { KEY_PREFIX: 'posthorn', ADDRESS_CONCURRENCY: '100' };
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  await subscribeMany(operator.url, receiver.url, 1);
  const publish = (events: number) => publishMany(ingest.url, events, () => event400());
  // BullMQ's stream of events first grows to its limit, so that it is not counted.
  await publish(2_000);
  const before = await bench.redisBytes();
  await publish(count);
  const pendingTotal = await bench.redisBytes();
  const pendingBytes = (pendingTotal - before) / count;
  const pendingKinds = await bytesByKind(bench.redis);

  let worker = await bench.startApp('worker', env);
  await until('the backlog', async () => (await countOf(receiver)) >= count + 2_000);
  await worker.stop();
  // The first 2,000 count too: what they leave is of the same kind.
  const afterDrain = await bench.redisBytes();
  const finishedKinds = await bytesByKind(bench.redis);
  await bench.redis.flushdb();
  await ingest.stop();
  await operator.stop();
  const emptyBytes = await bench.redisBytes();
  const all = count + 2_000;
  const finishedBytes = (afterDrain - emptyBytes) / all;
  const where = {
    pending: rowsOf(pendingKinds, pendingTotal - emptyBytes, all),
    finished: rowsOf(finishedKinds, afterDrain - emptyBytes, all),
  };

  const env2 = { ...env, KEY_PREFIX: `bench-${randomUUID()}` };
  const again = { ingest: await bench.startApp('ingest', env2), operator: await bench.startApp('console', env2) };
  await subscribeMany(again.operator.url, receiver.url, 1);
  worker = await bench.startApp('worker', env2);
  const residentMb: { deliveries: number; mb: number }[] = [];
  const base = await countOf(receiver);
  for (let done = 0; done < longRun; ) {
    await publishMany(again.ingest.url, 10_000, () => event400());
    done += 10_000;
    const target = base + done;
    await until('a part of the long run', async () => (await countOf(receiver)) >= target);
    residentMb.push({ deliveries: done, mb: (await processUsage(worker.child.pid!)).residentBytes / 1e6 });
  }
  for (const one of [worker, again.ingest, again.operator, receiver]) await one.stop();
  await bench.redis.flushdb();
  return { pendingBytes, finishedBytes, where, residentMb };
}
