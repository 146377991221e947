/**
 * What tracing costs: CPU per event of ingest and per delivery of a worker, without it, with a tenth of the traces sampled, and with all of
 * them, in turns. A collector takes the spans.
 */
import { runPosthorn } from './deliveries.ts';
import { type Bench, median } from './harness.ts';
import { publish, withSubscriptions } from './ingest.ts';

const CASES = ['off', 'tenth', 'all'] as const;
type Case = (typeof CASES)[number];

export interface TracingCost {
  ingestCpuUs: number;
  workerCpuUs: number;
}

/** Medians of `rounds` runs of `events` events and `deliveries` deliveries each. */
export async function benchTracing(bench: Bench, events: number, deliveries: number, rounds: number) {
  const collector = await bench.start('bench/processes/collector.ts');
  const settings: Record<Case, Record<string, string>> = {
    off: {},
    tenth: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.1',
    },
    all: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  };
  const runs = { off: [], tenth: [], all: [] } as Record<Case, TracingCost[]>;
  const ingest = await measureIngest(bench, events, rounds, settings);
  for (let round = 0; round < rounds; round++) {
    for (const one of CASES) {
      const { workerCpuUs } = await runPosthorn(bench, deliveries, 1, settings[one]);
      runs[one].push({ ingestCpuUs: ingest[one][round] ?? Number.NaN, workerCpuUs });
    }
  }
  const batches = Number(await (await fetch(`${collector.url}/count`)).text());
  if (batches === 0) throw new Error('The collector got no spans.');
  await collector.stop();
  const middle = (of: TracingCost[]): TracingCost => ({
    ingestCpuUs: median(of.map((run) => run.ingestCpuUs)),
    workerCpuUs: median(of.map((run) => run.workerCpuUs)),
  });
  return { off: middle(runs.off), tenth: middle(runs.tenth), all: middle(runs.all) };
}

/** CPU per event of each run. The processes stay the same, so that all but the first run find them warm. */
async function measureIngest(
  bench: Bench,
  count: number,
  rounds: number,
  settings: Record<Case, Record<string, string>>,
): Promise<Record<Case, number[]>> {
  const receiver = await bench.start('bench/processes/receiver.ts');
  const started = new Map<Case, Awaited<ReturnType<typeof withSubscriptions>>>();
  for (const one of CASES) started.set(one, await withSubscriptions(bench, receiver.url, 0, settings[one], 1));
  const cpu: Record<Case, number[]> = { off: [], tenth: [], all: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [one, { ingest }] of started) {
      cpu[one].push((await publish(ingest, count, 'session.approved')).cpuUsPerEvent);
    }
  }
  for (const { ingest, operator } of started.values()) {
    await ingest.stop();
    await operator.stop();
  }
  await receiver.stop();
  await bench.redis.flushdb();
  return cpu;
}
