/** Ten times the events that ingest can take: what it takes, what it refuses, and what that does to its memory. */
import { randomUUID } from 'node:crypto';
import {
  type Bench,
  event400,
  type Health,
  inParallel,
  PUBLISHER_KEY,
  percentile,
  processUsage,
  subscribeMany,
  until,
  watchHealth,
} from './harness.ts';

const BATCH = 500;
const FACTOR = 10;

export interface Overload extends Health {
  /** Events a second that ingest takes from four publishers who wait for their answers. */
  capacityPerS: number;
  offeredPerS: number;
  acceptedPerS: number;
  /** Batches by status, `none` for those that got no answer in 10 s. */
  answers: Record<string, number>;
  answerP99Ms: number;
  ingestMb: { before: number; peak: number; after: number };
  workerPeakMb: number;
  /** Accepted events that arrived; anything but all is a loss. */
  accepted: number;
  arrived: number;
}

export async function benchOverload(bench: Bench, seconds: number): Promise<Overload> {
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, ADDRESS_CONCURRENCY: '100' };
  const receiver = await bench.start('bench/processes/receiver.ts');
  const [ingest, operator] = [await bench.startApp('ingest', env), await bench.startApp('console', env)];
  const worker = await bench.startApp('worker', env);
  await subscribeMany(operator.url, receiver.url, 1, { event_types: ['session.approved'] });
  // Few of the events have a delivery: what is offered is to be too much for ingest, not for the machine.
  const body = (i: number) =>
    JSON.stringify({
      events: Array.from({ length: BATCH }, (_, k) =>
        event400(k === i % BATCH ? 'session.approved' : 'session.expired'),
      ),
    });
  const bodies = Array.from({ length: 10 }, (_, i) => body(i));
  let accepted = 0;
  let deliveries = 0;
  const answers: Record<string, number> = {};
  const times: number[] = [];
  const send = async (i: number) => {
    const startedAt = performance.now();
    let status = 'none';
    try {
      const response = await fetch(`${ingest.url}/v1/events/batch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${PUBLISHER_KEY}`, 'content-type': 'application/json' },
        body: bodies[i % bodies.length]!,
        signal: AbortSignal.timeout(10_000),
      });
      const answer = (await response.json()) as { results?: { status: number; deliveries: number }[] };
      status = String(response.status);
      if (status === '503' && !response.headers.has('retry-after')) status = '503 without Retry-After';
      for (const result of answer.results ?? []) {
        if (result.status !== 202) continue;
        accepted += 1;
        deliveries += result.deliveries;
      }
    } catch (error) {
      if ((error as Error).name !== 'TimeoutError') status = (error as Error).message;
    }
    answers[status] = (answers[status] ?? 0) + 1;
    times.push(performance.now() - startedAt);
  };
  const usage = async () => (await processUsage(ingest.child.pid!)).residentBytes / 1e6;
  await inParallel(40, 4, send);
  const startedAt = performance.now();
  const count = 20 * seconds;
  await inParallel(count / 10, 4, send);
  const capacityPerS = (count * BATCH) / 10 / ((performance.now() - startedAt) / 1_000);
  const before = await usage();
  times.length = 0;
  for (const status of Object.keys(answers)) delete answers[status];
  const acceptedBefore = accepted;

  const offeredPerS = FACTOR * capacityPerS;
  const health = watchHealth([ingest, worker]);
  const sent: Promise<unknown>[] = [];
  let [peak, workerPeak] = [before, 0];
  const beganAt = performance.now();
  for (let i = 0, seen = 0; performance.now() - beganAt < seconds * 1_000; ) {
    // Whoever answers, however late: the next batches come when they come.
    const wanted = (((performance.now() - beganAt) / 1_000) * offeredPerS) / BATCH;
    for (; i < wanted; i++) sent.push(send(i));
    if (performance.now() - seen > 250) {
      seen = performance.now();
      peak = Math.max(peak, await usage());
      workerPeak = Math.max(workerPeak, (await processUsage(worker.child.pid!)).residentBytes / 1e6);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const tookS = (performance.now() - beganAt) / 1_000;
  const acceptedPerS = (accepted - acceptedBefore) / tookS;
  await Promise.all(sent);
  const figures = await health.stop();
  const arrived = async () => Number(await (await fetch(`${receiver.url}/count`)).text());
  await until('all that was accepted', async () => (await arrived()) >= deliveries).catch(() => undefined);
  const after = await usage();
  const result = {
    ...figures,
    capacityPerS,
    offeredPerS: (sent.length * BATCH) / tookS,
    acceptedPerS,
    answers: { ...answers },
    answerP99Ms: percentile(times, 0.99),
    ingestMb: { before, peak, after },
    workerPeakMb: workerPeak,
    accepted: deliveries,
    arrived: await arrived(),
  };
  for (const one of [worker, operator, ingest, receiver]) await one.stop();
  await bench.redis.flushdb();
  return result;
}
