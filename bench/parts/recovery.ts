/** Retries that are due at once or late, and a resume: `npm run bench -- --only=recovery`. */
import type { Health } from '../harness.ts';
import { benchRecovery } from '../recovery.ts';
import { type Run, round } from '../run.ts';

export async function recovery({ bench, size }: Run) {
  const recovery = await benchRecovery(bench, size(20_000), size(50_000), size(10_000));
  const health = ({ failed, checks, slowestMs, loopMs }: Health) => ({
    'health checks failed': `${failed} of ${checks}`,
    'slowest, ms': round(slowestMs),
    'event loop blocked, ms': round(loopMs),
  });
  console.log(`${size(20_000)} retries due in the same second, 40 addresses`);
  console.table(
    recovery.atOnce.map((of) => ({
      workers: of.workers,
      'first after ms': round(of.firstMs),
      'p50 ms': round(of.p50Ms),
      'last ms': round(of.lastMs),
      'p99 of others, ms': of.healthyP99Ms,
      ...health(of),
    })),
  );
  console.log('Release of waiting deliveries: at most RELEASE_RATE (50) a second to one address');
  const { late, resumed, resumedTogether } = recovery;
  const besideOthers = (of: typeof late) => ({
    'took s': round(of.seconds),
    'most in a second': of.mostInASecond,
    'p99 of others, ms': of.healthyP99Ms,
    'alone, ms': of.healthyAloneP99Ms,
    ...health(of),
  });
  console.table({
    [`${size(50_000)} retries an hour late, 10 addresses`]: besideOthers(late),
    [`${size(20_000)} held, 200 addresses`]: besideOthers(resumedTogether),
    [`${size(10_000)} held, one address`]: {
      'took s': round(resumed.seconds),
      'most in a second': resumed.mostInASecond,
      ...health(resumed),
    },
  });
  return recovery;
}
