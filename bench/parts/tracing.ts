/** What tracing costs, at a fixed rate and under full load: `npm run bench -- --only=tracing`. */
import { type Run, round } from '../run.ts';
import { benchTracingLoaded, benchTracingPaced, type Estimate, type TracingCost } from '../tracing.ts';

export async function tracing({ bench, quick }: Run) {
  const paced = await benchTracingPaced(bench, quick ? 8 : 80);
  const loaded = await benchTracingLoaded(bench, quick ? 1 : 4, quick ? 8 : 60);
  const interval = ({ middle, from, to }: Estimate) => `${middle.toFixed(3)} (${from.toFixed(3)} to ${to.toFixed(3)})`;
  const row = ({ offCpuUs, onCpuUs, ratio, control }: TracingCost) => ({
    off: round(offCpuUs),
    on: round(onCpuUs),
    'on/off (95 % interval)': interval(ratio),
    'off/off': interval(control),
  });
  const goal = '<= 1.05';
  console.log('Tracing: CPU in µs for each event with one delivery, all traces sampled, at 600 events a second');
  console.table({
    ingest: { ...row(paced.ingest), goal },
    worker: { ...row(paced.worker), goal },
    Redis: row(paced.redis),
  });
  console.log('Under full load: ingest for an event, a worker for a delivery');
  console.table({ ingest: { ...row(loaded.ingest), goal }, worker: { ...row(loaded.worker), goal } });
  return { paced, loaded };
}
