/** How long healthy addresses wait beside bad ones: `npm run bench -- --only=isolation`. */
import { benchIsolation, type Latency } from '../isolation.ts';
import { type Run, round } from '../run.ts';

export async function isolation({ bench, quick, size }: Run) {
  const isolation = await benchIsolation(bench, quick ? 5 : 20, size(100_000), size(20_000), size(4_000));
  const row = ({ p50Ms, p99Ms, arrivals, mostInFlightAtBad }: Latency, goal = '<= 2') => ({
    'p50 ms': p50Ms,
    'p99 ms': p99Ms,
    'p99 ratio': round(p99Ms / isolation.alone.p99Ms, 2),
    goal,
    arrivals,
    'in flight at the bad host': mostInFlightAtBad ?? '',
  });
  console.log('Isolation: from publishing to arrival at 45 healthy addresses, one worker');
  console.table({
    'no bad ones': row(isolation.alone, ''),
    '5 more that never answer, as many events each': row(isolation.hanging),
    '5 more that answer after 900 ms': row(isolation.slow),
    [`a dead one with a backlog of ${size(100_000)}`]: row(isolation.backlog),
    [`a dead one that gets ${size(20_000)} at once`]: row(isolation.burst, ''),
    '12 hosts that respond soon and then hang together': row(isolation.turning),
    '120 unknown ones on 12 hosts that never answer': row(isolation.unknown),
    'a worker starts beside 400 new ones on 400 hosts that never answer': row(isolation.besideNew, ''),
    'the same, the last attempts to them timed out': row(isolation.besideFailing, ''),
    'the same, the healthy ones are new as well': row(isolation.allNew, ''),
    '300 addresses on one host that hangs': row(isolation.oneHost),
  });
  const { addresses, unknownS, slowBeforeS } = isolation.started;
  console.log(`From the start of a worker until ${addresses} addresses that respond at once have an event each, s`);
  console.table({ unknown: round(unknownS, 1), 'the last attempts timed out': round(slowBeforeS, 1) });
  return isolation;
}
