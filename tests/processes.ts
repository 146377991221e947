/** Apps as processes of their own, as operators run them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');

export interface Process {
  child: ChildProcess;
  /** Everything it wrote so far. */
  output: string[];
  ended: Promise<number | NodeJS.Signals>;
  /** Resolves with the `ready` line. */
  ready: Promise<{ url: string }>;
}

/** The lines of a process that nothing that is done to it explains: errors in its log, and what is no line of it. */
export function complaintsOf({ output }: Process): string[] {
  return output.filter((line) => !line.startsWith('{') || /"level":"(error|fatal)"/.test(line));
}

/** `eager-worker` is a worker that takes over sooner what a dead process has left. */
export type ProcessName = 'ingest' | 'worker' | 'eager-worker' | 'console';

/** Starts one app with exactly this environment (and the path, and where Node keeps what it has compiled). */
export function startProcess(app: ProcessName, env: Record<string, string>): Process {
  const main = app === 'eager-worker' ? 'tests/eager-worker.ts' : `apps/${app}/src/main.ts`;
  const child = spawn(process.execPath, [join(root, main)], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: join(root, '.posthorn/compile-cache'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  const ready = Promise.withResolvers<{ url: string }>();
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on('line', (line) => {
      output.push(line);
      if (line.includes('"msg":"ready"')) ready.resolve(JSON.parse(line) as { url: string });
    });
  }
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? -1));
  });
  void ended.then((code) => ready.reject(new Error(`${app} ended with ${code}: ${output.join('\n')}`)));
  ready.promise.catch(() => undefined);
  return { child, output, ended, ready: ready.promise };
}
