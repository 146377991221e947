/** Runs the command line as an operator does, in a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { BASE_ENV } from './processes.ts';
import { OPERATOR_TOKEN } from './world.ts';

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

/** Resolves with the exit code and the output of `posthorn <args>` against the console at `url`. */
export function runPosthorn(...command: Parameters<typeof startPosthorn>): Promise<Ran> {
  return startPosthorn(...command).ended;
}

/** Starts `posthorn <args>`. `ran` has its output so far. */
export function startPosthorn(url: string, args: string[], env: Record<string, string> = {}, input = '') {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../apps/cli/src/main.ts'), ...args], {
    env: { ...BASE_ENV, POSTHORN_URL: url, POSTHORN_TOKEN: OPERATOR_TOKEN, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // A command that does not read its input may end before it is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const ran: Ran = { code: null, out: '', err: '' };
  child.stdout.on('data', (text) => {
    ran.out += text;
  });
  child.stderr.on('data', (text) => {
    ran.err += text;
  });
  const ended = new Promise<Ran>((resolve) => child.once('close', (code) => resolve({ ...ran, code })));
  return { child, ran, ended };
}
