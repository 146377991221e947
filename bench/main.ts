/**
 * `npm run bench`: measures Posthorn and its baselines for docs/figures.md, and prints tables and JSON.
 * `--quick` runs a tenth; with `--always` Redis writes to disk before it replies; `--redis-delay=` is how many
 * milliseconds away Redis is, each way; `--only=` runs one part (a name that is none lists them); `--target=` is the
 * file of another system (bench/targets.ts).
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { readArguments, readNumber, stopWith } from '../scripts/arguments.ts';
import { buildApps } from '../scripts/build-apps.ts';
import { openBench } from './harness.ts';
import { compare } from './parts/compare.ts';
import { deliveries } from './parts/deliveries.ts';
import { directory } from './parts/directory.ts';
import { fanOut } from './parts/fan-out.ts';
import { hanging } from './parts/hanging.ts';
import { ingest } from './parts/ingest.ts';
import { isolation } from './parts/isolation.ts';
import { killed } from './parts/killed.ts';
import { latency } from './parts/latency.ts';
import { lists } from './parts/lists.ts';
import { memory } from './parts/memory.ts';
import { overload } from './parts/overload.ts';
import { partitions } from './parts/partitions.ts';
import { processes } from './parts/processes.ts';
import { recovery } from './parts/recovery.ts';
import { tracing } from './parts/tracing.ts';
import type { Part } from './run.ts';

/** In this order. */
const PARTS: Record<string, Part> = {
  deliveries,
  partitions,
  ingest,
  tracing,
  memory,
  'fan-out': fanOut,
  latency,
  compare,
  processes,
  lists,
  directory,
  isolation,
  hanging,
  recovery,
  killed,
  overload,
};
const {
  quick,
  always,
  only,
  target,
  'redis-delay': redisDelay,
} = readArguments({
  quick: { type: 'boolean', default: false },
  always: { type: 'boolean', default: false },
  'redis-delay': { type: 'string', default: '0' },
  only: { type: 'string' },
  target: { type: 'string' },
});
if (only !== undefined && !Object.hasOwn(PARTS, only))
  stopWith(`--only takes one of ${Object.keys(PARTS).join(', ')}.`);

console.log(`Node ${process.version}, ${cpus().length} cores. The machine may be noisy: compare the ratios.\n`);
await buildApps(console.log);
const redis = { appendFsync: always ? 'always' : 'everysec', delayMs: readNumber('redis-delay', redisDelay) } as const;
const bench = await openBench(redis);
const run = { bench, redis, quick, rounds: quick ? 1 : 5, size: (full: number) => (quick ? full / 10 : full), target };
const results: Record<string, unknown> = { node: process.version, cores: cpus().length, at: new Date().toISOString() };
for (const [name, part] of Object.entries(PARTS)) {
  if (only === undefined || only === name) results[name] = await part(run);
}
await bench.close();
const folder = join(import.meta.dirname, 'results');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(results, null, 2)}\n`);
console.log('JSON: bench/results/latest.json');
