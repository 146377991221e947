/** Runs the command line as an operator does, in a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { atEnd } from './own.ts';
import { BASE_ENV } from './processes.ts';
import { OPERATOR_TOKEN } from './world.ts';

/** The file of the command. */
export const POSTHORN = join(import.meta.dirname, '../apps/cli/bin/posthorn.js');

interface Ran {
  code: number | null;
  out: string;
  err: string;
}

/** Resolves with the exit code and the output of `posthorn <args>` against the console at `url`. */
export function runPosthorn(...command: Parameters<typeof ownPosthorn>): Promise<Ran> {
  return ownPosthorn(...command).ended;
}

/** Starts `posthorn <args>`, which runs until it ends or the test does. `ran` has its output so far. */
export function ownPosthorn(
  url: string,
  args: string[],
  env: Record<string, string> = {},
  input: string | Buffer = '',
) {
  const child = spawn(process.execPath, [POSTHORN, ...args], {
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
  atEnd(async () => {
    child.kill();
    await ended;
  });
  return { child, ran, ended };
}
