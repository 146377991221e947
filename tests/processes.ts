/** Apps as processes of their own, as operators run them. */
import { join } from 'node:path';
import { root } from '../scripts/folder.ts';
import { type ScriptProcess, startScript } from '../scripts/script-process.ts';

export interface Process extends ScriptProcess {
  /** Every line it wrote so far. */
  output: string[];
}

/** The lines of a process that nothing that is done to it explains: errors in its log, and what is no line of it. */
export function complaintsOf({ output }: Process): string[] {
  return output.filter((line) => !line.startsWith('{') || /"level":"(error|fatal)"/.test(line));
}

/** `eager-worker` is a worker that takes over sooner what a dead process has left. */
export type ProcessName = 'ingest' | 'worker' | 'eager-worker' | 'console';

/** Starts one app with exactly this environment (and the path, and where Node keeps what it has compiled). */
export function startProcess(app: ProcessName, env: Record<string, string>): Process {
  const output: string[] = [];
  const started = startScript(app === 'eager-worker' ? 'tests/eager-worker.ts' : `apps/${app}/src/main.ts`, {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: join(root, '.posthorn/compile-cache'), ...env },
    onLine: (line) => output.push(line),
  });
  return { ...started, output };
}
