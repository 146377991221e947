/**
 * What tracing costs: CPU of ingest and a worker for each event with one delivery, with all traces sampled and without
 * tracing, at a fixed rate and under full load (tracing-full-load.ts). The same two processes do both in turns, since
 * two processes that do the same differ. OpenTelemetry is always loaded.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  askCpuUs,
  type Bench,
  countOf,
  event400,
  median,
  PUBLISHER_KEY,
  percentile,
  post,
  subscribeMany,
  until,
  withTracingSwitch,
} from './harness.ts';
import { type InTurns, measureUnderFullLoad } from './tracing-full-load.ts';

const EVENTS_PER_S = 600;
/** Spans of a batch by default. */
const BATCH = 512;
/** A multiple of a batch, so that no span of a round is exported in the next one. */
const EVENTS = BATCH;
/** After the last delivery: its success is recorded, and the last spans are exported. */
const SETTLE_MS = 200;
const RESAMPLES = 2_000;
/** A busy machine gets fewer rounds. */
const MAX_MS = 80_000;
/** Rounds before the first that counts; every second one has tracing. */
const WARM_UP_ROUNDS = 8;

/** CPU in microseconds for each event. */
interface Cpu {
  ingest: number;
  worker: number;
  redis: number;
}

/** A median, and the limits between which 95 % of the medians of resampled values are. */
export interface Estimate {
  middle: number;
  from: number;
  to: number;
}

export interface TracingCost {
  offCpuUs: number;
  onCpuUs: number;
  /** CPU with tracing, divided by CPU without. */
  ratio: Estimate;
  /** CPU without tracing, divided by CPU without: the ratio to expect if tracing cost nothing. */
  control: Estimate;
}

/**
 * Measures pairs of blocks with and without a trace under full load: so many in each of so many pairs of an ingest and
 * a worker.
 */
export async function benchTracingLoaded(
  bench: Bench,
  processes: number,
  pairs: number,
): Promise<Record<keyof InTurns, TracingCost>> {
  const collector = await bench.start('bench/processes/collector.ts');
  const runs: InTurns[] = [];
  while (runs.length < processes) runs.push(await measureUnderFullLoad(bench, pairs, collector.url));
  await collector.stop();
  const costOf = (name: keyof InTurns) => compare(runs.map((run) => run[name]));
  return { ingest: costOf('ingest'), worker: costOf('worker') };
}

/** Measures up to so many pairs of rounds at a fixed rate, after some to warm up. */
export async function benchTracingPaced(bench: Bench, pairs: number): Promise<Record<keyof Cpu, TracingCost>> {
  const collector = await bench.start('bench/processes/collector.ts');
  const receiver = await bench.start('bench/processes/receiver.ts');
  const env = { KEY_PREFIX: `bench-${randomUUID()}` };
  const operator = await bench.startApp('console', env);
  await subscribeMany(operator.url, receiver.url, 1, { event_types: ['session.approved'], environment: 'sandbox' });
  await operator.stop();
  const traced = { ...env, ...withTracingSwitch(collector.url) };
  const ingest = await bench.startApp('ingest', traced);
  const worker = await bench.startApp('worker', traced);

  const run = async (isOn: boolean): Promise<Cpu> => {
    const before = { arrived: await countOf(receiver), batches: await countOf(collector) };
    const used = async () => ({
      ingest: await askCpuUs(ingest, isOn),
      worker: await askCpuUs(worker, isOn),
      redis: await bench.redisCpuUs(),
    });
    const from = await used();
    await publishPaced(ingest.url);
    await until('all deliveries', async () => (await countOf(receiver)) >= before.arrived + EVENTS);
    await pause(SETTLE_MS);
    const to = await used();
    const batches = (await countOf(collector)) - before.batches;
    const expected = isOn ? (2 * EVENTS) / BATCH : 0;
    if (batches !== expected) throw new Error(`The collector got ${batches} batches, not ${expected}.`);
    const each = (name: keyof Cpu) => (to[name] - from[name]) / EVENTS;
    return { ingest: each('ingest'), worker: each('worker'), redis: each('redis') };
  };

  for (let i = 0; i < WARM_UP_ROUNDS; i++) await run(i % 2 === 1);
  const rounds = [await run(false)];
  for (const endsAt = performance.now() + MAX_MS; rounds.length <= 2 * pairs && performance.now() < endsAt; )
    rounds.push(await run(true), await run(false));
  for (const one of [ingest, worker, receiver, collector]) await one.stop();
  await bench.redis.flushdb();
  const costOf = (name: keyof Cpu) => compare([rounds.map((cpu) => cpu[name])]);
  return { ingest: costOf('ingest'), worker: costOf('worker'), redis: costOf('redis') };
}

/** Publishes at a fixed rate, whatever the responses take. */
async function publishPaced(ingestUrl: string): Promise<void> {
  const startedAt = performance.now();
  const calls: Promise<void>[] = [];
  const send = async () => {
    const { status, text } = await post(`${ingestUrl}/v1/events`, PUBLISHER_KEY, event400('session.approved'));
    if (status !== 202) throw new Error(text);
  };
  while (calls.length < EVENTS) {
    const due = Math.min(EVENTS, Math.ceil(((performance.now() - startedAt) / 1_000) * EVENTS_PER_S));
    while (calls.length < due) calls.push(send());
    await pause(1);
  }
  await Promise.all(calls);
}

/**
 * Compares what was used without tracing and with it, in turns, in each run: each value with tracing with the mean of
 * its neighbours, and each without likewise with the nearest ones without.
 */
function compare(runs: readonly number[][]): TracingCost {
  const toNeighbours = (distance: number, isOn: boolean) =>
    estimate(
      runs.flatMap((used) =>
        used.flatMap((us, i) => {
          const [before, after] = [used[i - distance], used[i + distance]];
          return (i % 2 === 1) === isOn && before !== undefined && after !== undefined
            ? (2 * us) / (before + after)
            : [];
        }),
      ),
    );
  const medianOf = (isOn: boolean) => median(runs.flatMap((used) => used.filter((_, i) => (i % 2 === 1) === isOn)));
  return {
    offCpuUs: medianOf(false),
    onCpuUs: medianOf(true),
    ratio: toNeighbours(1, true),
    control: toNeighbours(2, false),
  };
}

function estimate(values: readonly number[]): Estimate {
  const resampled = Array.from({ length: RESAMPLES }, () =>
    median(values.map(() => values[Math.floor(Math.random() * values.length)] ?? Number.NaN)),
  );
  return { middle: median(values), from: percentile(resampled, 0.025), to: percentile(resampled, 0.975) };
}
