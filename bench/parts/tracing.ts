/** What tracing costs, at a fixed rate and under full load: `npm run bench -- --only=tracing`. */

import { type Run, round } from '../run.ts';
import { benchTracingLoaded, benchTracingPaced, type Estimate, type PacedCost, type TracingCost } from '../tracing.ts';

export async function tracing({ bench, quick }: Run) {
  const paced = await benchTracingPaced(bench, quick ? 8 : 80);
  const loaded = await benchTracingLoaded(bench, quick ? 1 : 8);
  const interval = ({ middle, from, to }: Estimate) => `${middle.toFixed(3)} (${from.toFixed(3)} to ${to.toFixed(3)})`;
  const row = ({ offCpuUs, onCpuUs, ratio }: TracingCost) => ({
    off: round(offCpuUs),
    on: round(onCpuUs),
    'on/off (95 % interval)': interval(ratio),
  });
  const pacedRow = (cost: PacedCost) => ({ ...row(cost), 'off/off': interval(cost.control) });
  const goal = '<= 1.05';
  console.log('Tracing: CPU in µs for each event with one delivery, all traces sampled, at 600 events a second');
  console.table({
    ingest: { ...pacedRow(paced.ingest), goal },
    worker: { ...pacedRow(paced.worker), goal },
    Redis: pacedRow(paced.redis),
  });
  console.log(
    'Under full load, beside processes that never load OpenTelemetry: ingest for an event, a worker for a delivery',
  );
  console.table({ ingest: { ...row(loaded.ingest), goal }, worker: { ...row(loaded.worker), goal } });
  return { paced, loaded };
}
