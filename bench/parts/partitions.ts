/** What 16 partitions cost while workers keep up: `npm run bench -- --only=partitions`. */
import { benchPartitions, type Cpu } from '../partitions.ts';
import { type Run, round } from '../run.ts';

export async function partitions({ bench, quick, size }: Run) {
  const figures = await benchPartitions(bench, size(4_000), quick ? 3 : 9);
  const titles = { paced: '1,000 events a second', fast: 'As fast as 20 publishers can' };
  for (const [load, title] of Object.entries(titles)) {
    const { one, partitioned, withoutIds } = figures[load as keyof typeof titles];
    const row = (name: keyof Cpu, goal = '') => ({
      'one partition': round(one[name]),
      '16 partitions': round(partitioned[name]),
      'ratio to one': round(partitioned[name] / one[name], 2),
      'without ids': round(withoutIds[name]),
      'to one': round(withoutIds[name] / one[name], 2),
      goal,
    });
    console.log(`${title}: CPU, µs an event`);
    console.table({ ingest: row('ingest'), worker: row('worker', '<= 1.1'), Redis: row('redis', '<= 1.1') });
  }
  return figures;
}
