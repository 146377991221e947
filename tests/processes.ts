/** Runs apps as separate processes, built as for production (`tests/setup/prepare-apps.ts`). */
import { join } from 'node:path';
import { root } from '../scripts/folder.ts';
import { type ScriptProcess, startScript } from '../scripts/script-process.ts';

export interface Process extends ScriptProcess {
  /** Every line of output so far. */
  output: string[];
}

/** Returns the lines that no test expects: errors in the log, and output that is not a log line. */
export function complaintsOf({ output }: Process): string[] {
  return output.filter((line) => !line.startsWith('{') || /"level":"(error|fatal)"/.test(line));
}

/** `eager-worker` is a worker that takes over the jobs of a dead process sooner. */
export type ProcessName = 'ingest' | 'worker' | 'eager-worker' | 'console';

/**
 * What each process of Node gets, besides what its test says: the path, and a cache that halves the CPU of its start.
 */
export const BASE_ENV = {
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: join(root, '.posthorn/compile-cache'),
};

/** Returns the built app. Another checkout may be too old to be built. */
function scriptOf(app: ProcessName, dir: string): string {
  if (app === 'eager-worker') return 'apps/worker/dist-eager/eager-worker.cjs';
  return dir === root ? `apps/${app}/dist/main.cjs` : `apps/${app}/src/main.ts`;
}

/** Starts one app, of this checkout or the one in `dir`, with exactly this environment (and `BASE_ENV`). */
export function startProcess(app: ProcessName, env: Record<string, string>, dir = root): Process {
  const output: string[] = [];
  const started = startScript(scriptOf(app, dir), {
    env: { ...BASE_ENV, ...env },
    dir,
    onLine: (line) => output.push(line),
  });
  return { ...started, output };
}
