/**
 * Deliveries per second and CPU per delivery: one worker process empties a backlog, the plain baseline and Posthorn
 * with one and with 16 partitions in turns, with ids of the publisher and without. What a worker costs that has nothing
 * to do.
 */
import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import {
  type Bench,
  type BenchProcess,
  countOf,
  event400,
  medians,
  PUBLISHER_KEY,
  post,
  processUsage,
  publishMany,
  subscribeToTopics,
  TOPICS,
  topicEvent,
  until,
} from './harness.ts';

interface Run {
  deliveriesPerS: number;
  workerCpuUs: number;
  redisCpuUs: number;
}

const PARTITIONS = 16;
/** The share of a backlog before a worker is measured: V8 compiles until about 20,000 deliveries. */
const WARM_UP = 0.4;
/** How long an idle worker is watched, and how long before that it has been idle: V8 compiles for some seconds. */
const IDLE_MS = 20_000;
const IDLE_BEFORE_MS = 15_000;
/** Events or jobs of a call. */
const BATCH = 500;

/** What an idle worker costs. `commandsPerS` includes those that scripts call. */
interface Idle {
  cpuPercent: number;
  commandsPerS: number;
}

/** Medians of `rounds` runs of `count` deliveries each; Redis's CPU includes adding the deliveries. */
export async function benchDeliveries(bench: Bench, count: number, rounds: number) {
  const runs = { plain: [] as Run[], posthorn: [] as Run[], partitioned: [] as Run[], withoutIds: [] as Run[] };
  for (let round = 0; round < rounds; round++) {
    runs.plain.push(await runPlain(bench, count));
    runs.posthorn.push(await runPosthorn(bench, count, 1));
    runs.partitioned.push(await runPosthorn(bench, count, PARTITIONS));
    runs.withoutIds.push(await runPosthorn(bench, count, PARTITIONS, publishWithoutIds));
  }
  return {
    plain: medians(runs.plain),
    posthorn: medians(runs.posthorn),
    partitioned: medians(runs.partitioned),
    withoutIds: medians(runs.withoutIds),
    idle: await runIdle(bench),
  };
}

async function runIdle(bench: Bench): Promise<Idle> {
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, PARTITIONS: String(PARTITIONS) };
  const worker = await bench.startApp('worker', env);
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await bench.redis.info('stats'))?.[1]);
  await wait(IDLE_BEFORE_MS);
  const [before, commandsBefore] = [await processUsage(worker.child.pid!), await commands()];
  await wait(IDLE_MS);
  const [after, commandsAfter] = [await processUsage(worker.child.pid!), await commands()];
  await worker.stop();
  await bench.redis.flushdb();
  return {
    cpuPercent: (100 * (after.cpuUs - before.cpuUs)) / (1000 * IDLE_MS),
    commandsPerS: (commandsAfter - commandsBefore) / (IDLE_MS / 1000),
  };
}

async function runPlain(bench: Bench, count: number): Promise<Run> {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const queue = new Queue('plain', { connection: bench.redis });
  const cpuBefore = await bench.redisCpuUs();
  for (let start = 0; start < count; start += BATCH) {
    await queue.addBulk(
      Array.from({ length: Math.min(BATCH, count - start) }, (_, i) => ({
        name: 'delivery',
        data: {
          url: `${receiver.url}/${i % TOPICS.length}`,
          secret: 'whsec_0123456789012345678901234567890123456789012',
          event: { id: `evt_${randomUUID()}`, created_at: new Date().toISOString(), ...event400() },
        },
        opts: { attempts: 6, backoff: { type: 'custom' } },
      })),
    );
  }
  const run = await drain(bench, count, receiver, () => bench.startPlain('worker'), cpuBefore);
  await queue.obliterate({ force: true });
  await receiver.stop();
  return run;
}

async function runPosthorn(bench: Bench, count: number, partitions: number, publish = publishMany): Promise<Run> {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, PARTITIONS: String(partitions) };
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  // Each event goes to one address, as in the plain run.
  await subscribeToTopics(operator.url, receiver.url);
  const cpuBefore = await bench.redisCpuUs();
  const deliveries = await publish(ingest.url, count, topicEvent);
  if (deliveries !== count) throw new Error(`${count} events have ${deliveries} deliveries.`);
  const run = await drain(bench, count, receiver, () => bench.startApp('worker', env), cpuBefore);
  for (const one of [ingest, operator, receiver]) await one.stop();
  await bench.redis.flushdb();
  return run;
}

/** Publishes in batches; returns the number of deliveries. Posthorn makes the ids. */
async function publishWithoutIds(
  ingestUrl: string,
  count: number,
  eventAt: Parameters<typeof publishMany>[2],
): Promise<number> {
  let deliveries = 0;
  for (let start = 0; start < count; start += BATCH) {
    const events = Array.from({ length: Math.min(BATCH, count - start) }, (_, i) => eventAt(start + i));
    const { status, text } = await post(`${ingestUrl}/v1/events/batch`, PUBLISHER_KEY, { events });
    const { results } = JSON.parse(text) as { results: { deliveries?: number }[] };
    if (status !== 200) throw new Error(text);
    deliveries += results.reduce((sum, result) => sum + (result.deliveries ?? 0), 0);
  }
  return deliveries;
}

async function drain(
  bench: Bench,
  count: number,
  receiver: BenchProcess,
  startWorker: () => Promise<{ child: { pid?: number | undefined }; stop(): Promise<void> }>,
  redisCpuBefore: number,
): Promise<Run> {
  const worker = await startWorker();
  const warm = Math.floor(count * WARM_UP);
  await until('warm-up', async () => (await countOf(receiver)) >= warm);
  const [first, startedAt, before] = [
    await countOf(receiver),
    performance.now(),
    await processUsage(worker.child.pid!),
  ];
  await until('all deliveries', async () => (await countOf(receiver)) >= count);
  const seconds = (performance.now() - startedAt) / 1000;
  const after = await processUsage(worker.child.pid!);
  await worker.stop();
  return {
    deliveriesPerS: (count - first) / seconds,
    workerCpuUs: (after.cpuUs - before.cpuUs) / (count - first),
    redisCpuUs: ((await bench.redisCpuUs()) - redisCpuBefore) / count,
  };
}
