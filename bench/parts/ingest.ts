/** Events a second and CPU for each, beside a plain ingest: `npm run bench -- --only=ingest`. */
import { benchAckReplicas, benchIngest } from '../ingest.ts';
import { type Run, round } from '../run.ts';

export async function ingest({ bench, rounds, size }: Run) {
  const many = size(10_000);
  const figures = await benchIngest(bench, size(4_000), rounds, many);
  const replicated = await benchAckReplicas(bench, size(4_000), rounds);
  const row = (of: (typeof figures)['plain']) => ({
    'events/s': round(of.eventsPerS),
    'p50 ms': round(of.p50Ms, 1),
    'p99 ms': round(of.p99Ms, 1),
    'CPU µs/event': round(of.cpuUsPerEvent),
    'Redis CPU': round(of.redisCpuUsPerEvent),
  });
  console.log('Ingest: single events, 20 concurrent publishers');
  console.table({
    'plain: express, zod, one job': row(figures.plain),
    'Posthorn, no match': row(figures.noMatch),
    'Posthorn, 1 of 1 subscription matches': { ...row(figures.oneOfOne), goal: 'events/s >= plain' },
    'Posthorn, 3 of 3 subscriptions match': row(figures.threeOfThree),
    [`Posthorn, 3 of ${many + 3} match`]: row(figures.threeOfMany),
    '64 publishers: plain': row(figures.plainMany),
    '64 publishers: Posthorn, 1 of 1 matches': row(figures.oneOfOneMany),
    'Posthorn, 3 of 3 match, a replica beside it': row(replicated.waitsNot),
    'Posthorn, 3 of 3 match, the replica waited for (ACK_REPLICAS=1)': row(replicated.waits),
  });
  return { ...figures, replicated };
}
