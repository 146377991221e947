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

/** Starts one app with exactly this environment (and the path). */
export function startProcess(app: 'ingest' | 'worker' | 'console', env: Record<string, string>): Process {
  const child = spawn(process.execPath, [join(root, `apps/${app}/src/main.ts`)], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...env },
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
