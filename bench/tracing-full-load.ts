/**
 * What tracing costs under full load: CPU of ingest for an event while publishers wait for nothing but its responses,
 * and of a worker for a delivery while it empties the backlog. Blocks of events with and without a trace take turns in
 * the same two processes, since two processes that do the same differ by more than tracing costs.
 */
import { randomUUID } from 'node:crypto';
import {
  askCpuUs,
  type Bench,
  countOf,
  subscribeToTopics,
  TOPICS,
  topicEvent,
  until,
  withTracingSwitch,
} from './harness.ts';
import { createRawPublishers } from './raw-publishers.ts';

const CONNECTIONS = 20;
/**
 * Events in a row that have a trace, and that have none. Longer blocks would differ more by what else the machine does.
 */
const BLOCK = 1_000;
/** Deliveries at the ends of a block that are in flight together with those of its neighbours. */
const MIXED = 150;
/**
 * Blocks before the first one that counts: V8 compiles until then. An even number, so that one without a trace is next.
 */
const WARM_UP_BLOCKS = 30;
/** Interval of counting arrived deliveries: short enough that far fewer than `MIXED` arrive in it. */
const LOOK_MS = 2;

/** CPU in microseconds for each event, and for each delivery: of blocks without a trace and with one, in turns. */
export interface InTurns {
  ingest: number[];
  worker: number[];
}

/**
 * Measures so many pairs of blocks, of events without a trace and with one, and one more without. The apps have
 * OpenTelemetry loaded and sample every trace that ingest begins.
 */
export async function measureUnderFullLoad(bench: Bench, pairs: number, collectorUrl: string): Promise<InTurns> {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = {
    KEY_PREFIX: `bench-${randomUUID()}`,
    ...withTracingSwitch(collectorUrl),
  };
  const operator = await bench.startApp('console', env);
  await subscribeToTopics(operator.url, receiver.url);
  await operator.stop();
  const blocks = WARM_UP_BLOCKS + 2 * pairs + 1;
  const ingest = await publishBlocks(bench, env, blocks);
  const worker = await deliverBlocks(bench, env, blocks, () => countOf(receiver));
  await receiver.stop();
  await bench.redis.flushdb();
  return { ingest: ingest.slice(WARM_UP_BLOCKS), worker: worker.slice(WARM_UP_BLOCKS) };
}

/** Publishes all events; returns what ingest has used for an event of each block. */
async function publishBlocks(bench: Bench, env: Record<string, string>, blocks: number): Promise<number[]> {
  const ingest = await bench.startApp('ingest', env);
  const events = TOPICS.map((_, i) => topicEvent(i));
  const publishers = createRawPublishers(ingest.url, CONNECTIONS, events);
  await publishers.connect();
  const used: number[] = [];
  for (let block = 0; block < blocks; block++) {
    const fromUs = await askCpuUs(ingest, block % 2 === 1);
    await publishers.publish(BLOCK);
    used.push(((await askCpuUs(ingest)) - fromUs) / BLOCK);
  }
  publishers.close();
  await ingest.stop();
  return used;
}

/** Delivers all events; returns what a worker has used for a delivery of each block. */
async function deliverBlocks(
  bench: Bench,
  env: Record<string, string>,
  blocks: number,
  arrived: () => Promise<number>,
): Promise<number[]> {
  const worker = await bench.startApp('worker', env);
  /** What the worker has used until at least so many have arrived, and how many have. */
  const usedUntil = async (count: number) => {
    const hasArrived = async () => {
      const all = await arrived();
      return all >= count && all;
    };
    const all = await until(`${count} deliveries`, hasArrived, undefined, LOOK_MS);
    return { all, us: await askCpuUs(worker, true) };
  };
  const used: number[] = [];
  for (let block = 0; block < blocks; block++) {
    const startsAt = block * BLOCK;
    const from = await usedUntil(startsAt + MIXED);
    const to = await usedUntil(startsAt + BLOCK - MIXED);
    used.push((to.us - from.us) / (to.all - from.all));
  }
  await worker.stop();
  return used;
}
