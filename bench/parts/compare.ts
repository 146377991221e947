/**
 * The same work by Posthorn, a plain system and, with `--target`, one that was started before: `npm run bench --
 * --only=compare`.
 */
import { compareSystem } from '../compare.ts';
import { openBench } from '../harness.ts';
import { type Run, round } from '../run.ts';
import { openTarget, startPlain, startPosthorn } from '../systems.ts';
import { readTarget } from '../targets.ts';

export async function compare({ bench, redis, quick, size, target }: Run) {
  const sizes = { events: size(20_000), fanOuts: quick ? 3 : 10, seconds: quick ? 3 : 20 };
  const other = target === undefined ? undefined : readTarget(target);
  const comparisons = [];
  // Each with a Redis of its own: one that has just done other work uses more memory.
  for (const [name, always] of [
    ['Posthorn', false],
    ['Posthorn, always', true],
    ['plain BullMQ + got', false],
  ] as const) {
    const own = await openBench({ ...redis, appendFsync: always ? 'always' : 'everysec' }, name);
    const start = name.startsWith('plain') ? startPlain : startPosthorn;
    const system = await start(own, name, other?.fanOut ?? 100);
    comparisons.push(await compareSystem(system, sizes));
    await system.stop();
    await own.close();
  }
  if (other) {
    const system = await openTarget(bench, other);
    comparisons.push(await compareSystem(system, sizes));
    await system.stop();
  }
  console.log('Single events from 20 publishers, one signed delivery each; then a fan-out; then 100 events a second');
  const goals = {
    'CPU µs a delivery': '<= 600, always: <= 700',
    'services, MB': '<= 350',
    'fan-out, ms': '<= 15',
    'arrival p50, ms': '<= 3',
  };
  console.table({
    ...Object.fromEntries(
      comparisons.map((of) => [
        of.name,
        {
          'CPU µs a delivery': round(of.servicesCpuUs + of.storesCpuUs),
          'of services': round(of.servicesCpuUs),
          'of stores': round(of.storesCpuUs),
          'deliveries/s': round(of.deliveriesPerS),
          'services, MB': round(of.servicesMb),
          'fan-out, ms': round(of.fanOutMs),
          'arrival p50, ms': round(of.p50Ms, 1),
          'p99, ms': round(of.p99Ms, 1),
        },
      ]),
    ),
    'goal for Posthorn': goals,
  });
  return comparisons;
}
