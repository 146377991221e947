/**
 * Deliveries a second and CPU for each, beside a plain worker and with 16 partitions: `npm run bench --
 * --only=deliveries`.
 */
import { benchDeliveries } from '../deliveries.ts';
import { type Run, round } from '../run.ts';

export async function deliveries({ bench, rounds, size }: Run) {
  const { idle, ...runs } = await benchDeliveries(bench, size(50_000), Math.min(rounds, 3));
  const { plain, posthorn, partitioned, withoutIds } = runs;
  console.log('Deliveries: one worker process empties a backlog (median of runs)');
  const row = (figure: keyof typeof plain, goal: string, goalOf16 = '') => ({
    plain: round(plain[figure]),
    Posthorn: round(posthorn[figure]),
    ratio: round(posthorn[figure] / plain[figure], 2),
    goal,
    '16 partitions': round(partitioned[figure]),
    'ratio to one': round(partitioned[figure] / posthorn[figure], 2),
    'without ids': round(withoutIds[figure]),
    'to one': round(withoutIds[figure] / posthorn[figure], 2),
    'goal of 16': goalOf16,
  });
  console.table({
    'deliveries/s': row('deliveriesPerS', '>= 1.6'),
    'worker CPU, µs/delivery': row('workerCpuUs', '<= 0.5', '<= 1.1'),
    'Redis CPU, µs/delivery': row('redisCpuUs', '<= 1.2', '<= 1.1'),
  });
  console.log('A worker with nothing to do, 16 partitions');
  console.table({
    'CPU, % of a core': { worker: round(idle.cpuPercent, 1), goal: '<= 1' },
    'commands/s, those in scripts included': { worker: round(idle.commandsPerS), goal: '<= 100' },
  });
  return { ...runs, idle };
}
