/** The start of each process, and its memory after a load: `npm run bench -- --only=processes`. */
import { type Run, round } from '../run.ts';
import { benchProcessMemory, benchStart } from '../start-up.ts';

export async function processes({ bench, rounds, size }: Run) {
  const started = await benchStart(bench, rounds);
  console.log('Start of a process, until it is ready (median of runs)');
  console.table(
    Object.fromEntries(
      Object.entries(started).map(([name, { ms, cpuMs }]) => [
        name,
        { ms: round(ms), 'CPU, ms': round(cpuMs), goal: name.startsWith('plain') ? '' : '<= 1000 ms' },
      ]),
    ),
  );
  const events = size(20_000);
  const memory = await benchProcessMemory(bench, events);
  const row = ({ mb, ownMb, cpuUs }: (typeof memory)['plain']) => {
    const [ingest = 0, worker = 0, operator = 0] = mb.map((one) => round(one));
    const together = ingest + worker + operator;
    const own = { 'without shared files': round(ownMb), 'CPU µs/delivery': round(cpuUs) };
    return { ingest, worker, console: operator, together, ...own };
  };
  console.log(`Memory of the processes after ${events} deliveries, MB`);
  console.table({ plain: row(memory.plain), Posthorn: row(memory.posthorn), goal: { together: '<= 350' } });
  return { started, memory };
}
