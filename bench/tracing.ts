/**
 * What tracing costs: CPU of ingest and a worker for each event with one delivery, without it, with a tenth of the traces sampled, and with
 * all of them. The processes of all cases run beside each other and work in turns, so that all are warm and the machine is the same.
 */
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { type Bench, type BenchProcess, median, subscribeMany, until } from './harness.ts';
import { publish } from './ingest.ts';

export interface TracingCost {
  ingestCpuUs: number;
  workerCpuUs: number;
}

interface Side {
  ingest: BenchProcess;
  worker: BenchProcess;
  receiver: BenchProcess;
  others: BenchProcess[];
  runs: TracingCost[];
}

/** Medians of `rounds` rounds of `count` events each, after one to warm up. */
export async function benchTracing(bench: Bench, count: number, rounds: number) {
  const collector = await bench.start('bench/processes/collector.ts');
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const ratio = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' };
  const sides = {
    off: await startSide(bench, {}),
    tenth: await startSide(bench, { ...on, ...ratio }),
    all: await startSide(bench, on),
  };
  for (let round = 0; round <= rounds; round++) {
    for (const side of Object.values(sides)) {
      const run = await runSide(side, count);
      if (round > 0) side.runs.push(run);
    }
  }
  for (const { ingest, worker, receiver, others } of Object.values(sides)) {
    for (const one of [ingest, worker, receiver, ...others]) await one.stop();
  }
  const batches = Number(await (await fetch(`${collector.url}/count`)).text());
  if (batches === 0) throw new Error('The collector got no spans.');
  await collector.stop();
  await bench.redis.flushdb();
  const middle = ({ runs }: Side): TracingCost => ({
    ingestCpuUs: median(runs.map((run) => run.ingestCpuUs)),
    workerCpuUs: median(runs.map((run) => run.workerCpuUs)),
  });
  return { off: middle(sides.off), tenth: middle(sides.tenth), all: middle(sides.all) };
}

async function startSide(bench: Bench, settings: Record<string, string>): Promise<Side> {
  const env = { KEY_PREFIX: `bench-${randomUUID()}`, ...settings };
  const receiver = await bench.start('bench/processes/receiver.ts');
  const operator = await bench.startApp('console', env);
  await subscribeMany(operator.url, receiver.url, 1, { event_types: ['session.approved'], environment: 'sandbox' });
  const [ingest, worker] = [await bench.startApp('ingest', env), await bench.startApp('worker', env)];
  return { ingest, worker, receiver, others: [operator], runs: [] };
}

async function runSide({ ingest, worker, receiver }: Side, count: number): Promise<TracingCost> {
  const arrived = async () => Number(await (await fetch(`${receiver.url}/count`)).text());
  const before = { arrived: await arrived(), ingest: await cpuUs(ingest), worker: await cpuUs(worker) };
  await publish(ingest, count, 'session.approved');
  // A tenth more, to warm up.
  const published = count + Math.floor(count / 10);
  await until('all deliveries', async () => (await arrived()) >= before.arrived + published);
  return {
    ingestCpuUs: ((await cpuUs(ingest)) - before.ingest) / published,
    workerCpuUs: ((await cpuUs(worker)) - before.worker) / published,
  };
}

/** CPU time of all threads of a process so far. Linux counts it in nanoseconds here, and in hundredths of a second in `stat`. */
async function cpuUs({ child }: BenchProcess): Promise<number> {
  const threads = await readdir(`/proc/${child.pid}/task`);
  const times = await Promise.all(threads.map((id) => readFile(`/proc/${child.pid}/task/${id}/schedstat`, 'utf8')));
  return times.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1000, 0);
}
