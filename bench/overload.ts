/**
 * Publishes ten times the events that ingest can accept, and measures what it accepts, what it refuses, and its memory.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type Bench,
  countOf,
  event400,
  type Health,
  PUBLISHER_KEY,
  percentile,
  processUsage,
  subscribeMany,
  until,
  watchHealth,
} from './harness.ts';

const BATCH = 500;
const FACTOR = 10;
const WARM_UP_S = 2;
/** Connections of publishers of single events that wait for responses, and of those that do not. */
const [WAITING, NOT_WAITING] = [20, 5_000];

/** What publishers sent and which responses they got. */
export interface Told {
  /** Responses by status; `none`: no response in time; `unsent`: no connection was free. */
  answers: Record<string, number>;
  /** Deliveries of accepted events. */
  deliveries: number;
  offeredPerS: number;
  acceptedPerS: number;
  answerP99Ms: number;
}

/**
 * Publishes for some seconds: each event after a response or, with `perS`, at a fixed rate whether responses arrive or
 * not.
 */
type Load = (ingestUrl: string, seconds: number, perS?: number) => Promise<Told>;

export interface Overload extends Health, Told {
  /** Events a second that ingest accepts from publishers who wait for responses. */
  capacityPerS: number;
  ingestMb: { before: number; peak: number; after: number };
  workerPeakMb: number;
  /** Accepted deliveries that arrived. Fewer than all means a loss. */
  arrived: number;
}

export async function benchOverload(bench: Bench, seconds: number): Promise<{ batches: Overload; singles: Overload }> {
  return { batches: await overload(bench, batches, seconds), singles: await overload(bench, singles, seconds) };
}

async function overload(bench: Bench, load: Load, seconds: number): Promise<Overload> {
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, ADDRESS_CONCURRENCY: '100' };
  const receiver = await bench.start('bench/processes/receiver.ts');
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  const worker = await bench.startApp('worker', env);
  await subscribeMany(operator.url, receiver.url, 1, { event_types: ['session.approved'] });
  const residentMb = async ({ child }: typeof ingest) => (await processUsage(child.pid!)).residentBytes / 1e6;

  const warmUp = await load(ingest.url, WARM_UP_S);
  const waiting = await load(ingest.url, Math.ceil(seconds / 5));
  const before = await residentMb(ingest);
  let [peak, workerPeakMb] = [before, 0];
  const health = watchHealth([ingest, worker]);
  const watch = setInterval(async () => {
    peak = Math.max(peak, await residentMb(ingest));
    workerPeakMb = Math.max(workerPeakMb, await residentMb(worker));
  }, 250);
  const told = await load(ingest.url, seconds, FACTOR * waiting.acceptedPerS);
  clearInterval(watch);
  const figures = await health.stop();
  const deliveries = warmUp.deliveries + waiting.deliveries + told.deliveries;
  await until('all that was accepted', async () => (await countOf(receiver)) >= deliveries).catch(() => undefined);
  const result = {
    ...figures,
    ...told,
    capacityPerS: waiting.acceptedPerS,
    ingestMb: { before, peak, after: await residentMb(ingest) },
    workerPeakMb,
    deliveries,
    arrived: await countOf(receiver),
  };
  for (const one of [worker, operator, ingest, receiver]) await one.stop();
  await bench.redis.flushdb();
  return result;
}

/**
 * Publishes batches from this process. One event of each batch has a delivery, so that ingest is overloaded and not the
 * machine.
 */
async function batches(ingestUrl: string, seconds: number, perS?: number): Promise<Told> {
  const body = JSON.stringify({
    events: Array.from({ length: BATCH }, (_, i) => event400(i === 0 ? 'session.approved' : 'session.expired')),
  });
  const told = { answers: {} as Record<string, number>, deliveries: 0 };
  const times: number[] = [];
  let accepted = 0;
  const send = async () => {
    const startedAt = performance.now();
    let status = 'none';
    try {
      const response = await fetch(`${ingestUrl}/v1/events/batch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${PUBLISHER_KEY}`, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(10_000),
      });
      const answer = (await response.json()) as { results?: { status: number; deliveries: number }[] };
      status = String(response.status);
      if (status === '503' && !response.headers.has('retry-after')) status = '503 without Retry-After';
      const taken = (answer.results ?? []).filter((result) => result.status === 202);
      accepted += taken.length;
      told.deliveries += taken.reduce((sum, { deliveries }) => sum + deliveries, 0);
    } catch (error) {
      if ((error as Error).name !== 'TimeoutError') status = (error as Error).message;
    }
    told.answers[status] = (told.answers[status] ?? 0) + 1;
    times.push(performance.now() - startedAt);
  };
  const startedAt = performance.now();
  const elapsedS = () => (performance.now() - startedAt) / 1_000;
  const sent: Promise<void>[] = [];
  const publisher = async () => {
    while (elapsedS() < seconds) {
      sent.push(send());
      await sent.at(-1);
    }
  };
  if (perS === undefined) {
    await Promise.all(Array.from({ length: 4 }, publisher));
  } else {
    // The next batch does not wait for responses.
    for (; elapsedS() < seconds; await new Promise((resolve) => setTimeout(resolve, 5))) {
      while (sent.length * BATCH < elapsedS() * perS) sent.push(send());
    }
  }
  const figures = { offeredPerS: (sent.length * BATCH) / elapsedS(), acceptedPerS: accepted / elapsedS() };
  await Promise.all(sent);
  return { ...told, ...figures, answerP99Ms: percentile(times, 0.99) };
}

/**
 * Publishes single events from a process of its own: at ten times the rate the publisher needs as much CPU as ingest.
 */
async function singles(ingestUrl: string, seconds: number, perS?: number): Promise<Told> {
  const how =
    perS === undefined ? { CONNECTIONS: String(WAITING) } : { CONNECTIONS: String(NOT_WAITING), PER_S: String(perS) };
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'processes/flood.ts')], {
    env: { ...process.env, INGEST_URL: ingestUrl, SECONDS: String(seconds), ...how },
  });
  return JSON.parse(stdout) as Told;
}
