/**
 * What tracing costs under full load, beside processes that never load OpenTelemetry: CPU of ingest for an event while
 * publishers wait for nothing but its responses, and of a worker for a delivery while it empties the backlog. Two
 * processes that do the same differ by a few percent, so several of each are measured.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../scripts/folder.ts';
import { askCpuUs, type Bench, countOf, subscribeToTopics, TOPICS, topicEvent, until } from './harness.ts';
import { createRawPublishers } from './raw-publishers.ts';

const CONNECTIONS = 20;
/** Events of an ingest before it is measured. After 4,000, V8 still compiles, and an event takes up to one and a half times as much CPU. */
const WARM_UP = 20_000;
/** The events of one ingest, then of the other, and so on. */
const TURN = 1_000;
const TURNS = 24;
const EVENTS = WARM_UP + TURNS * TURN;
/** Deliveries of a worker before it is measured. */
const WORKER_WARM_UP = 20_000;

/** CPU in microseconds for each event and for each delivery. */
export interface LoadedCpu {
  ingest: number;
  worker: number;
}

/** Measures so many sets of processes; in each is an ingest and a worker of each kind, with the environment of that kind. */
export async function measureUnderFullLoad(
  bench: Bench,
  sets: number,
  kinds: readonly Record<string, string>[],
): Promise<LoadedCpu[][]> {
  const measured: LoadedCpu[][] = kinds.map(() => []);
  for (let i = 0; i < sets; i++) {
    const opened = await Promise.all(kinds.map((settings) => openKind(bench, settings)));
    const all = opened.map((kind, index) => ({ kind, index }));
    // Each kind is the first as often.
    const inTurn = [...all.slice(i % kinds.length), ...all.slice(0, i % kinds.length)];
    for (const { kind } of inTurn) await kind.publish(WARM_UP);
    const ingestUs = kinds.map(() => 0);
    for (let turn = 0; turn < TURNS; turn++)
      for (const { kind, index } of inTurn) ingestUs[index] = (ingestUs[index] ?? 0) + (await kind.publish(TURN));
    // At the same time, since a busy machine would give one worker more of it than the next one.
    const workerUs = await Promise.all(opened.map((kind) => kind.deliver()));
    for (const [index, worker] of workerUs.entries())
      measured[index]?.push({ ingest: (ingestUs[index] ?? 0) / (TURNS * TURN), worker });
    await bench.redis.flushdb();
  }
  return measured;
}

/** Starts an ingest of a kind, with publishers, a receiver and, for each topic, an address. */
async function openKind(bench: Bench, settings: Record<string, string>) {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = {
    KEY_PREFIX: `bench-${randomUUID()}`,
    NODE_OPTIONS: `--import=${pathToFileURL(join(root, 'bench/processes/cpu-usage.ts')).href}`,
    ...settings,
  };
  const operator = await bench.startApp('console', env);
  await subscribeToTopics(operator.url, receiver.url);
  await operator.stop();
  const ingest = await bench.startApp('ingest', env);
  const publishers = createRawPublishers(
    ingest.url,
    CONNECTIONS,
    TOPICS.map((_, i) => topicEvent(i)),
  );
  return {
    /** Resolves with the CPU time that ingest has used for so many events. */
    async publish(count: number): Promise<number> {
      await publishers.connect();
      const from = await askCpuUs(ingest);
      await publishers.publish(count);
      return (await askCpuUs(ingest)) - from;
    },
    /** Stops ingest and delivers all events; resolves with the CPU time of a worker for a delivery. */
    async deliver(): Promise<number> {
      publishers.close();
      await ingest.stop();
      const worker = await bench.startApp('worker', env);
      await until('warm-up', async () => (await countOf(receiver)) >= WORKER_WARM_UP);
      const [first, fromUs] = [await countOf(receiver), await askCpuUs(worker)];
      await until('all deliveries', async () => (await countOf(receiver)) >= EVENTS);
      const usedUs = (await askCpuUs(worker)) - fromUs;
      await worker.stop();
      await receiver.stop();
      return usedUs / (EVENTS - first);
    },
  };
}
