/**
 * What partitions on one Redis cost while workers keep up: CPU of ingest, worker and Redis for each event with one
 * delivery, with one and with 16 partitions in turns, at a fixed rate and as fast as publishers can. (deliveries.ts has
 * a worker that empties a backlog.)
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Bench, countOf, medians, processUsage, subscribeToTopics, TOPICS, topicEvent, until } from './harness.ts';
import { createRawPublishers } from './raw-publishers.ts';

const CONNECTIONS = 20;
const EVENTS_PER_S = 1_000;
/** Events published at once at the fixed rate. */
const BURST = 4;
/** V8 compiles until about 20,000 deliveries. */
const WARM_UP = 20_000;
/** After the last delivery: its success is recorded. */
const SETTLE_MS = 50;

/** CPU in microseconds for each event. */
export interface Cpu {
  ingest: number;
  worker: number;
  redis: number;
}

interface System {
  /** Publishes so many events and waits for their deliveries. */
  run(count: number, isPaced: boolean): Promise<Cpu>;
  stop(): Promise<void>;
}

const SYSTEMS = {
  one: { partitions: 1, withIds: true },
  partitioned: { partitions: 16, withIds: true },
  withoutIds: { partitions: 16, withIds: false },
} as const;
type Name = keyof typeof SYSTEMS;

/** Medians of `rounds` rounds of `count` events for each system and load. */
export async function benchPartitions(bench: Bench, count: number, rounds: number) {
  const systems = new Map<Name, System>();
  for (const [name, options] of Object.entries(SYSTEMS)) systems.set(name as Name, await start(bench, options));
  const measure = async (isPaced: boolean) => {
    const all: Record<Name, Cpu[]> = { one: [], partitioned: [], withoutIds: [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, system] of systems) all[name].push(await system.run(count, isPaced));
    }
    return {
      one: medians(all.one),
      partitioned: medians(all.partitioned),
      withoutIds: medians(all.withoutIds),
    };
  };
  for (const system of systems.values()) await system.run(WARM_UP, false);
  const result = { paced: await measure(true), fast: await measure(false) };
  for (const system of systems.values()) await system.stop();
  await bench.redis.flushdb();
  return result;
}

async function start(bench: Bench, options: (typeof SYSTEMS)[Name]): Promise<System> {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, PARTITIONS: String(options.partitions) };
  const operator = await bench.startApp('console', env);
  await subscribeToTopics(operator.url, receiver.url);
  await operator.stop();
  const [ingest, worker] = [await bench.startApp('ingest', env), await bench.startApp('worker', env)];
  const events = TOPICS.map((_, i) => topicEvent(i));
  const publishers = createRawPublishers(ingest.url, CONNECTIONS, events, options.withIds);
  const used = async (): Promise<Cpu> => ({
    ingest: (await processUsage(ingest.child.pid!)).cpuUs,
    worker: (await processUsage(worker.child.pid!)).cpuUs,
    redis: await bench.redisCpuUs(),
  });
  const publishPaced = async (count: number) => {
    const startedAt = performance.now();
    for (let sent = 0; sent < count; sent += BURST) {
      await pause(Math.max(0, startedAt + (1_000 * sent) / EVENTS_PER_S - performance.now()));
      await publishers.publish(BURST);
    }
  };
  return {
    async run(count, isPaced) {
      await publishers.connect();
      const [expected, from] = [(await countOf(receiver)) + count, await used()];
      await (isPaced ? publishPaced(count) : publishers.publish(count));
      await until('all deliveries', async () => (await countOf(receiver)) >= expected);
      await pause(SETTLE_MS);
      const to = await used();
      const each = (name: keyof Cpu) => (to[name] - from[name]) / count;
      return { ingest: each('ingest'), worker: each('worker'), redis: each('redis') };
    },
    async stop() {
      publishers.close();
      for (const one of [ingest, worker, receiver]) await one.stop();
    },
  };
}
