/** How long an event takes to arrive, and a response beside fan-outs: `npm run bench -- --only=latency`. */
import { benchLatency } from '../fan-out.ts';
import { type Run, round } from '../run.ts';

export async function latency({ bench, quick, size }: Run) {
  const latency = await benchLatency(bench, size(1_000), quick ? 3 : 20);
  const row = ({ p50Ms, p99Ms }: { p50Ms: number; p99Ms: number }) => ({
    'p50 ms': round(p50Ms, 1),
    'p99 ms': round(p99Ms, 1),
  });
  console.log('From publishing to arrival, 100 events a second');
  console.table({ plain: row(latency.plain), Posthorn: { ...row(latency.posthorn), goal: 'p50 <= 3' } });
  console.log(`Responses to single events beside one event to ${size(1_000)} addresses a second`);
  const { aloneP99Ms, disturbedP99Ms } = latency.beside;
  console.table({ alone: { 'p99 ms': round(aloneP99Ms, 1) }, beside: { 'p99 ms': round(disturbedP99Ms, 1) } });
  return latency;
}
