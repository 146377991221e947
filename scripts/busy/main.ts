/**
 * Runs the whole test suite several times while every core is busy, and prints a table of the runs:
 * `npm run test:busy -- --runs=5 --spinners=8`. All other arguments are passed to jest.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArgumentsAndRest, readCount } from '../arguments.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Starts jest like the npm script `jest`, but without npm in between, so that signals reach it. */
const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
const MAX_RUNS = 1_000;
const MAX_SPINNERS = 1_024;

interface Run {
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  /** Names of failed tests, and files that could not be run. */
  failures: string[];
}

/** The parts of jest's JSON report that are used. */
interface JestReport {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

/** The run of jest in progress. */
let jest: ChildProcess | undefined;
/** The signal that ended the runs early. */
let interruptedBy: NodeJS.Signals | undefined;
/** All runs are over. */
let ended = false;

function main(): Promise<void> {
  const { values, rest } = readArgumentsAndRest({
    runs: { type: 'string', default: '5' },
    spinners: { type: 'string', default: String(availableParallelism()) },
  });
  const runs = readCount('runs', values.runs, 1, MAX_RUNS);
  const spinners = readCount('spinners', values.spinners, 1, MAX_SPINNERS);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      interruptedBy = signal;
      endRun(signal);
    });
  }
  return runAll(runs, spinners, rest);
}

async function runAll(runs: number, spinners: number, jestArgs: string[]): Promise<void> {
  const load = Array.from({ length: spinners }, startSpinner);
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-busy-'));
  const done: Run[] = [];
  try {
    for (let i = 1; i <= runs && !interruptedBy; i++) {
      say(`\nRun ${i} of ${runs}, with ${spinners} busy processes`);
      const run = await runTests(join(folder, `${i}.json`), jestArgs);
      if (!interruptedBy) done.push(run);
    }
  } finally {
    ended = true;
    for (const spinner of load) spinner.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
  say(summaryOf(done));
  const allPassed = done.length === runs && done.every(({ failed, failures }) => failed + failures.length === 0);
  process.exitCode = allPassed ? 0 : 1;
  if (interruptedBy) say(`Ended early (${interruptedBy}), after ${done.length} of ${runs} runs.`);
}

/** Starts one busy process. It ends with this process, for whatever reason that ends. */
function startSpinner(): ChildProcess {
  const child = fork(join(import.meta.dirname, 'spin.ts'), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  child.on('exit', (code, signal) => {
    if (ended || interruptedBy) return;
    say(`A busy process exited with ${code ?? signal}: further runs would prove nothing.`);
    interruptedBy = 'SIGTERM';
    endRun('SIGTERM');
  });
  return child;
}

/**
 * Ends the run in progress and everything that it started: jest, its workers, Redis, browsers. They are one process
 * group.
 */
function endRun(signal: NodeJS.Signals): void {
  if (jest?.pid !== undefined) process.kill(-jest.pid, signal);
}

/** Runs jest once. Its output goes to the terminal, its report to `reportFile`. */
async function runTests(reportFile: string, jestArgs: string[]): Promise<Run> {
  const startedAtMs = performance.now();
  const args = [...JEST, '--json', `--outputFile=${reportFile}`, ...jestArgs];
  // jest prints its progress to stderr.
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  jest = child;
  const code = await new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, signal) => resolve(exitCode ?? signal ?? -1));
  });
  jest = undefined;
  const seconds = Math.round((performance.now() - startedAtMs) / 1000);
  const report = readReport(reportFile);
  if (!report) {
    return { passed: 0, failed: 0, skipped: 0, seconds, failures: [`jest exited with ${code} and wrote no report`] };
  }
  const failures = report.testResults.flatMap(({ name, status, assertionResults }) => {
    const failed = assertionResults.filter((one) => one.status === 'failed').map(({ fullName }) => fullName);
    return status === 'failed' && failed.length === 0 ? [`${name.replace(`${ROOT}/`, '')} (did not run)`] : failed;
  });
  if (code !== 0 && failures.length === 0) failures.push(`jest exited with ${code}`);
  return {
    passed: report.numPassedTests,
    failed: failures.length,
    skipped: report.numPendingTests + report.numTodoTests,
    seconds,
    failures,
  };
}

function readReport(file: string): JestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as JestReport;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function summaryOf(runs: Run[]): string {
  const rows = runs.map(({ passed, failed, skipped, seconds }, i) => [i + 1, passed, failed, skipped, seconds]);
  const table = [['run', 'passed', 'failed', 'skipped', 'seconds'], ...rows].map((row) =>
    row.map((cell) => String(cell).padStart(8)).join(''),
  );
  const failures = runs.flatMap((run, i) => run.failures.map((name) => `  run ${i + 1}: ${name}`));
  const green = runs.filter(({ failures: found }) => found.length === 0).length;
  return [
    '',
    ...table,
    '',
    ...(failures.length > 0 ? ['Failed:', ...failures, ''] : []),
    `${green} of ${runs.length} runs passed`,
  ].join('\n');
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

await main();
