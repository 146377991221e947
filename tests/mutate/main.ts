/**
 * `npm run mutate`: makes many small changes to the source and lists those that no test notices. Works on copies of the
 * tree. `--only=named,core,signing,requests,guard,sender,client,receiver,lua` selects parts. Of the Lua mutations it
 * runs a sample: `--sample=200` (0: all), chosen by `--seed=1`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments, readCount, stopWith } from '../../scripts/arguments.ts';
import { type OwnRedis, startRedis } from '../../scripts/redis/server.ts';
import { random } from '../chaos/random.ts';
import { reasonFor } from './accepted.ts';
import type { Mutant, Outcome } from './mutant.ts';
import { locate, NAMED } from './named.ts';
import { type Bench, runMutants, typeCheck } from './run-mutants.ts';
import { runStryker } from './stryker.ts';
import { allLuaMutants, constantMutantsOf, LUA_STAGES, UNIT_TARGETS } from './targets.ts';
import { copyTree, REPOSITORY, removeTree } from './tree.ts';

const BENCHES = 2;
const PARTS = ['named', ...Object.keys(UNIT_TARGETS), 'lua'];
const MAX_SAMPLE = 1_000_000;
const MAX_SEED = 2 ** 32 - 1;
const say = (line: string) => console.log(line);

const options = readOptions();

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort(new Error(name)));
const { signal } = stop;
const trees: string[] = [];
const servers = new Set<OwnRedis>();
let benches: Bench[] = [];
let failed = false;
try {
  installStryker();
  const results: Record<string, Outcome[]> = {};
  for (const name of options.parts) {
    say(`\n${name} ...`);
    results[name] = await mutate(name);
  }
  report(results);
} catch (error) {
  failed = true;
  console.error(error);
} finally {
  for (const server of servers) await server.stop();
  for (const tree of trees) removeTree(tree);
}
process.exit(failed ? 1 : 0);

/** Reads the options. Refuses bad ones at once, because the run can take hours. */
function readOptions() {
  const { only, sample, seed } = readArguments({
    only: { type: 'string', default: PARTS.join(',') },
    sample: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
  });
  const parts = only.split(',');
  const unknown = parts.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) stopWith(`--only takes some of ${PARTS.join(',')}, not ${JSON.stringify(unknown)}.`);
  return {
    parts,
    sample: readCount('sample', sample, 0, MAX_SAMPLE),
    seed: readCount('seed', seed, 0, MAX_SEED),
  };
}

async function mutate(name: string): Promise<Outcome[]> {
  if (name === 'named') return await mutateNamed();
  if (name === 'lua') return await runAll(sample(allLuaMutants(), options.sample), LUA_STAGES);
  const target = UNIT_TARGETS[name]!;
  const testMatch = target.tests.map((glob) => `<rootDir>/${glob}`);
  const byStryker = await runStryker(ownTree(), target.files, testMatch, signal);
  const tests = ['--selectProjects', 'unit', '--', target.constantTests];
  const constants = await runAll(constantMutantsOf(target), [tests]);
  return await typeCheck((await makeBenches(1))[0]!, [...byStryker, ...constants], signal);
}

async function mutateNamed(): Promise<Outcome[]> {
  const benches = await makeBenches(1);
  const outcomes: Outcome[] = [];
  for (const named of NAMED) outcomes.push(...(await runMutants(benches, [locate(named)], [named.tests], { signal })));
  return outcomes;
}

async function runAll(mutants: readonly Mutant[], stages: readonly string[][]): Promise<Outcome[]> {
  const progress = (done: number) => {
    if (done % 50 === 0) say(`  ${done} of ${mutants.length}`);
  };
  return await runMutants(await makeBenches(BENCHES), mutants, stages, { signal, progress });
}

/** Makes copies of the tree, each with its own Redis, since a mutated script may block it. */
async function makeBenches(count: number): Promise<Bench[]> {
  while (benches.length < count) benches = [...benches, await makeBench()];
  return benches.slice(0, count);
}

async function makeBench(): Promise<Bench> {
  const tree = ownTree();
  const dir = join(tree, '.posthorn/mutate-redis');
  const start = async () => {
    const server = await startRedis(dir, { say, extra: ['--appendonly', 'no'] });
    servers.add(server);
    return server;
  };
  let server = await start();
  // A third of the usual stories of the model test: it runs once for each mutant that the tests of the store missed.
  const env = { REDIS_URL: server.url, MODEL_RUNS: '20' };
  const reset = async () => {
    servers.delete(server);
    await server.stop();
    server = await start();
    env.REDIS_URL = server.url;
  };
  return { tree, env, reset };
}

function ownTree(): string {
  const tree = copyTree();
  trees.push(tree);
  return tree;
}

/**
 * Returns some of the mutants, spread evenly over the scripts and the same for the same seed; all of them if `count` is
 * 0.
 */
function sample(mutants: readonly Mutant[], count: number): Mutant[] {
  if (count === 0 || count >= mutants.length) return [...mutants];
  const { next } = random(options.seed);
  const step = mutants.length / count;
  return Array.from({ length: count }, (_, i) => mutants[Math.floor((i + next()) * step)]!);
}

function report(results: Record<string, Outcome[]>): void {
  const rows = Object.entries(results).map(([name, outcomes]) => {
    const survivors = outcomes.filter(({ killed }) => !killed);
    const accepted = survivors.filter((outcome) => reasonFor(outcome) !== undefined).length;
    const killed = outcomes.length - survivors.length;
    const score = ((100 * killed) / Math.max(1, outcomes.length - accepted)).toFixed(1);
    return [
      name,
      { mutations: outcomes.length, killed, accepted, survived: survivors.length - accepted, 'score %': score },
    ];
  });
  for (const [name, outcomes] of Object.entries(results)) {
    for (const one of outcomes.filter((outcome) => !outcome.killed).sort((a, b) => a.line - b.line)) {
      const [original, replacement] = [one.original, one.replacement].map((text) => text.replace(/\s+/g, ' ').trim());
      const reason = reasonFor(one);
      say(
        `${reason ? 'accepted' : 'SURVIVED'} ${name} ${one.file}:${one.line} ${one.kind}: ${original} => ${replacement}`,
      );
      if (reason) say(`         ${reason}`);
    }
  }
  console.table(Object.fromEntries(rows));
  mkdirSync(join(REPOSITORY, '.posthorn'), { recursive: true });
  writeFileSync(join(REPOSITORY, '.posthorn/mutate.json'), JSON.stringify(results, null, 1));
}

/**
 * Stryker and its 150 packages are not in the repository's lock file, since nothing else needs them: they are installed
 * at first use.
 */
function installStryker(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules'))) return;
  say('Installing Stryker into tests/mutate (once) ...');
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: import.meta.dirname, stdio: 'inherit' });
  if (npm.status !== 0) throw new Error('npm ci failed in tests/mutate: it needs the package registry once');
}
