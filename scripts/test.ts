/**
 * `npm test`: lint, types and every test. Tests that need a missing program are skipped; a message says so, and the run
 * fails.
 */
import { spawn } from 'node:child_process';
import { dataDir, explainFileError, prepareFolder, root } from './folder.ts';
import { endTreeOnSignals } from './process-tree.ts';
import { provideHelm } from './programs/helm.ts';
import { chromium, curl, openssl, type Program, promtool, python, redisCli, redisServer } from './programs/programs.ts';
import { ProgramMissing, providePrograms } from './programs/provide.ts';

/** The programs that each kind of tests needs. With `REDIS_URL`, only tests that break a Redis start their own. */
const shared = process.env.REDIS_URL ? [] : [redisServer];
const NEEDS: Record<string, Program[]> = {
  unit: [],
  int: shared,
  e2e: [redisServer, redisCli, openssl, promtool, python],
  browser: [...shared, chromium, curl],
  chart: [],
};

/**
 * Downloads missing programs. Returns the message for those that are still missing, and the kinds of tests that need
 * them.
 */
async function prepare(): Promise<{ leftOut: string[]; missing?: string }> {
  prepareFolder(dataDir);
  try {
    await providePrograms([...new Set(Object.values(NEEDS).flat())], { say: console.log });
    return { leftOut: [] };
  } catch (error) {
    if (!(error instanceof ProgramMissing)) throw error;
    const { programs, message } = error;
    const leftOut = Object.keys(NEEDS).filter((kind) => NEEDS[kind]!.some((needed) => programs.includes(needed)));
    return { leftOut, missing: message };
  }
}

/** Runs a script of package.json to its end; resolves with its exit code. */
function run(script: string, args: string[] = []): Promise<number> {
  const child = spawn('npm', ['run', '-s', script, '--', ...args], { cwd: root, stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}

async function lintAndTest(): Promise<number> {
  // Downloads need the network, and lint the processor.
  const [{ leftOut, missing }, linted] = await Promise.all([prepare(), run('lint')]);
  if (linted !== 0) return linted;
  if (missing !== undefined) console.log(`${missing}\n\nOnly the other tests run.\n`);
  const kinds = Object.keys(NEEDS).filter((kind) => !leftOut.includes(kind));
  const tested = await run('jest', [
    ...process.argv.slice(2),
    ...(leftOut.length > 0 ? ['--selectProjects', ...kinds] : []),
  ]);
  if (missing === undefined) return tested;
  console.log(`FAILED: the tests of kind ${leftOut.join(', ')} did not run. ${missing}`);
  return 1;
}

async function main(): Promise<number> {
  const atEnd = new AbortController();
  // The tests of the chart run late, and wait for it. Without helm, they say so and pass.
  const helm = provideHelm({ say: console.log, signal: atEnd.signal });
  try {
    return await lintAndTest();
  } finally {
    atEnd.abort();
    await helm;
  }
}

endTreeOnSignals();
try {
  process.exitCode = await main();
} catch (error) {
  console.error(explainFileError(error)?.message ?? (error instanceof Error ? error.message : String(error)));
  process.exitCode = 1;
}
