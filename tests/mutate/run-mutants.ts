/** Runs tests against one mutant after the other, each in a copy of the tree. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runNode } from './child.ts';
import { applyMutant, type Mutant, type Outcome, outcomeOf } from './mutant.ts';

/** A run that takes this long hangs: the mutant is killed. */
const MAX_RUN_MS = 180_000;
const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];

export interface Bench {
  /** A copy of the repository. */
  tree: string;
  /** Environment variables of the tests, in addition to those of this process. */
  env: Record<string, string>;
  /** Called after a run that hung: a mutated script may have blocked this bench's Redis. */
  reset(): Promise<void>;
}

/**
 * Runs the tests of each mutant. `stages` are lists of jest's arguments; a later stage runs only if the tests of the
 * earlier one passed. Throws if tests fail without a mutation, since every mutant would then seem to be killed.
 */
export async function runMutants(
  benches: readonly Bench[],
  mutants: readonly Mutant[],
  stages: readonly string[][],
  options: { signal: AbortSignal; progress?: (done: number) => void },
): Promise<Outcome[]> {
  for (const stage of stages) {
    const { how, output } = await jest(benches[0]!, stage, options.signal);
    if (how !== 'succeeded') throw new Error(`These tests fail without any mutation: ${stage.join(' ')}\n${output}`);
  }
  const outcomes: Outcome[] = [];
  const todo = [...mutants];
  await Promise.all(
    benches.map(async (bench) => {
      for (let mutant = todo.shift(); mutant; mutant = todo.shift()) {
        outcomes.push(await tryMutant(bench, mutant, stages, options.signal));
        options.progress?.(outcomes.length);
      }
    }),
  );
  return outcomes;
}

/** Type-checks the survivors: `npm test` refuses a mutant that does not compile before any test runs. */
export async function typeCheck(bench: Bench, outcomes: readonly Outcome[], signal: AbortSignal): Promise<Outcome[]> {
  const compiles = async () => {
    const tsc = ['node_modules/typescript/bin/tsc', '-p', '.'];
    return (await runNode(tsc, { cwd: bench.tree, limitMs: MAX_RUN_MS, signal })).how === 'succeeded';
  };
  if (!(await compiles())) throw new Error('The types have errors without any mutation. Run: npm run lint');
  const checked: Outcome[] = [];
  for (const outcome of outcomes) {
    checked.push({ ...outcome, killed: outcome.killed || !(await mutated(bench, outcome, compiles)) });
  }
  return checked;
}

async function tryMutant(
  bench: Bench,
  mutant: Mutant,
  stages: readonly string[][],
  signal: AbortSignal,
): Promise<Outcome> {
  const source = readFileSync(join(bench.tree, mutant.file), 'utf8');
  return await mutated(bench, mutant, async () => {
    for (const stage of stages) {
      const { how } = await jest(bench, stage, signal);
      if (how === 'hung') await bench.reset();
      if (how !== 'succeeded') return outcomeOf(source, mutant, true);
    }
    return outcomeOf(source, mutant, false);
  });
}

/** Runs a function while a mutant is in a bench's tree. */
async function mutated<T>(bench: Bench, mutant: Mutant, act: () => Promise<T>): Promise<T> {
  const path = join(bench.tree, mutant.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, applyMutant(source, mutant));
  try {
    return await act();
  } finally {
    writeFileSync(path, source);
  }
}

function jest({ tree, env }: Bench, args: readonly string[], signal: AbortSignal) {
  return runNode([...JEST, '--bail', '--runInBand', '--silent', ...args], {
    cwd: tree,
    env,
    limitMs: MAX_RUN_MS,
    signal,
  });
}
