/** Runs Stryker over files of one package, in a copy of the tree, and reads its report. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import jestConfig from '../../jest.config.ts';
import { runNode } from './child.ts';
import { type Outcome, outcomeOf } from './mutant.ts';

const REPORT = 'stryker-report.json';
const JEST_CONFIG = 'stryker.jest.json';
const MAX_RUN_MS = 3_600_000;
/**
 * A mutant whose tests take this much longer than without it hangs and counts as killed. Stryker's 5 seconds are too
 * few on a busy machine: each run loads all test files, so mutants that no test notices would count as killed.
 */
const MAX_EXTRA_MS = 30_000;

interface Report {
  files: Record<string, { source: string; mutants: StrykerMutant[] }>;
}
interface StrykerMutant {
  mutatorName: string;
  replacement: string;
  /** `NoCoverage` is a survivor too; `Ignored`, `CompileError` and `RuntimeError` are not mutants. */
  status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'Ignored' | 'CompileError' | 'RuntimeError';
  location: { start: Position; end: Position };
}
/** Both counted from 1. */
interface Position {
  line: number;
  column: number;
}

/**
 * Mutates `files` (globs) and runs the tests `testMatch`. The instrumented code stays in the copy, so use it for
 * nothing else.
 */
export async function runStryker(
  tree: string,
  files: readonly string[],
  testMatch: readonly string[],
  signal: AbortSignal,
): Promise<Outcome[]> {
  const unit = jestConfig.projects?.find((project) => typeof project === 'object' && project.displayName === 'unit');
  const config = {
    testRunner: 'jest',
    // Its plugins are not in the repository's node_modules.
    plugins: [join(import.meta.dirname, 'node_modules/@stryker-mutator/jest-runner/dist/src/index.js')],
    // A separate configuration: the repository's one has four projects, and would run these tests in each.
    jest: { projectType: 'custom', configFile: JEST_CONFIG, enableFindRelatedTests: false },
    testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
    mutate: files,
    inPlace: true,
    concurrency: 2,
    coverageAnalysis: 'perTest',
    timeoutMS: MAX_EXTRA_MS,
    // Otherwise it rewrites the tsconfig with TypeScript's JavaScript API, which TypeScript 7 does not have.
    tsconfigFile: 'none.json',
    reporters: ['json'],
    jsonReporter: { fileName: REPORT },
    tempDirName: '.stryker-tmp',
  };
  writeFileSync(join(tree, JEST_CONFIG), JSON.stringify({ ...(unit as object), testMatch }));
  writeFileSync(join(tree, 'stryker.config.json'), JSON.stringify(config));
  const stryker = join(import.meta.dirname, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const { how, output } = await runNode([stryker, 'run'], { cwd: tree, limitMs: MAX_RUN_MS, signal });
  if (how !== 'succeeded') throw new Error(`Stryker ${how}:\n${output}`);
  return readReport(join(tree, REPORT));
}

function readReport(path: string): Outcome[] {
  const { files } = JSON.parse(readFileSync(path, 'utf8')) as Report;
  return Object.entries(files).flatMap(([file, { source, mutants }]) =>
    mutants
      .filter(({ status }) => ['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status))
      .map(({ mutatorName: kind, replacement, status, location }) => {
        const [start, end] = [offsetOf(source, location.start), offsetOf(source, location.end)];
        const killed = status === 'Killed' || status === 'Timeout';
        return outcomeOf(source, { file, kind, start, end, replacement }, killed);
      }),
  );
}

function offsetOf(source: string, { line, column }: Position): number {
  const before = source.split('\n').slice(0, line - 1);
  return before.reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
}
