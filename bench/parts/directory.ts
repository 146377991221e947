/** What a console keeps of each subscription, and searches: `npm run bench -- --only=directory`. */
import { benchDirectory, type DirectoryFigures } from '../directory.ts';
import { type Run, round } from '../run.ts';

export async function directory({ bench, size }: Run) {
  const sizes = [1_000, size(10_000), size(100_000)];
  const figures: ({ count: number } & DirectoryFigures)[] = [];
  for (const count of sizes) figures.push({ count, ...(await benchDirectory(bench, count, size(200))) });
  console.log('Directory: what a console keeps in memory of each subscription, the load after a start, and searches');
  console.table(
    Object.fromEntries(
      figures.map(({ count, bytesEach, load }) => [
        count,
        {
          'bytes each': round(bytesEach),
          'load, ms': round(load.ms),
          'CPU of the load, ms': round(load.cpuMs),
          'longest turn of it, CPU ms': round(load.turnMs, 1),
        },
      ]),
    ),
  );
  const table = (header: string, of: (search: (typeof figures)[number]['searches'][string]) => number | string) => {
    console.log(header);
    const names = Object.keys(figures[0]?.searches ?? {});
    const row = (name: string) => figures.map(({ count, searches }) => [`of ${count}`, of(searches[name]!)]);
    console.table(Object.fromEntries(names.map((name) => [name, Object.fromEntries(row(name))])));
  };
  table('Searches: p50 ms (p99)', ({ p50Ms, p99Ms }) => `${round(p50Ms, 1)} (${round(p99Ms, 1)})`);
  table('CPU ms a search', ({ cpuMs }) => round(cpuMs, 2));
  table('Longest turn of the event loop, CPU ms', ({ turnMs }) => round(turnMs, 1));
  return figures;
}
