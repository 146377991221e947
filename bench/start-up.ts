/** How long each app takes to start, and how much memory the processes have after many deliveries. */
import { readFile } from 'node:fs/promises';
import { type Bench, countOf, inParallel, medians, processUsage, until } from './harness.ts';
import { type System, startPlain, startPosthorn } from './systems.ts';

/** Publishers that wait for their responses. */
const CONCURRENCY = 20;

export interface Started {
  /** From the start of the process until it logs `ready`. */
  ms: number;
  cpuMs: number;
}

const APPS = ['ingest', 'worker', 'console'] as const;
const PLAIN = ['ingest', 'worker'] as const;

/** Starts each program `rounds` times, in turns; the medians. */
export async function benchStart(bench: Bench, rounds: number): Promise<Record<string, Started>> {
  const programs = new Map([
    ...PLAIN.map((program) => [`plain ${program}`, () => bench.startPlain(program)] as const),
    ...APPS.map((app) => [app, () => bench.startApp(app, { KEY_PREFIX: 'bench-start' })] as const),
  ]);
  const runs = new Map<string, Started[]>(Array.from(programs.keys(), (name) => [name, []]));
  // The first round fills the compile cache.
  for (let round = -1; round < rounds; round++) {
    for (const [name, start] of programs) {
      const startedAt = performance.now();
      const started = await start();
      const ms = performance.now() - startedAt;
      const { cpuUs } = await processUsage(Number(started.child.pid));
      await started.stop();
      if (round >= 0) runs.get(name)?.push({ ms, cpuMs: cpuUs / 1_000 });
    }
  }
  await bench.redis.flushdb();
  return Object.fromEntries(Array.from(runs, ([name, all]) => [name, medians(all)]));
}

/**
 * Measures after `events` single events to one address each. Resolves with the memory of each process in MB (`mb`), the
 * memory of all processes that is not shared with files (`ownMb`), and the CPU of all for a delivery in microseconds.
 */
export async function benchProcessMemory(bench: Bench, events: number) {
  return {
    plain: await loaded(await startPlain(bench, 'plain', 1), events),
    posthorn: await loaded(await startPosthorn(bench, 'Posthorn', 1), events),
  };
}

/**
 * Memory that is no copy of a file: pages of programs and libraries are shared by all processes that use them (Linux).
 */
async function ownBytes(pid: number): Promise<number> {
  const sums = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return 1024 * Number(/^Anonymous: +(\d+) kB$/m.exec(sums)?.[1]);
}

async function loaded(system: System, events: number): Promise<{ mb: number[]; ownMb: number; cpuUs: number }> {
  const { services } = system.pids;
  const usage = () => Promise.all(services.map(processUsage));
  const before = await usage();
  await inParallel(events, CONCURRENCY, (i) => system.publish(`bench-${i}`));
  await until('all deliveries', async () => (await countOf(system.receiver)) >= events);
  const after = await usage();
  const own = await Promise.all(services.map(ownBytes));
  await system.stop();
  const cpuUs = after.reduce((sum, { cpuUs }, i) => sum + cpuUs - (before[i]?.cpuUs ?? 0), 0) / events;
  const ownMb = own.reduce((sum, bytes) => sum + bytes, 0) / 1e6;
  return { mb: after.map(({ residentBytes }) => residentBytes / 1e6), ownMb, cpuUs };
}
