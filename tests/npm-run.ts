/** Runs scripts of package.json like a user, through npm. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { beforeAll } from '@jest/globals';
import { eventually, HUNG_MS } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { descendantsOf } from '../scripts/process-tree.ts';
import { redisServer } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import { atEnd } from './own.ts';
import { BASE_ENV } from './processes.ts';

let redisFolder = '';
beforeAll(async () => {
  const found = await providePrograms([redisServer], { say: () => undefined });
  redisFolder = dirname(found[redisServer.name]!);
});

/** A script's first output comes after a build of the apps, which takes a minute on a busy machine. */
const SAID_LIMIT_MS = 2 * HUNG_MS;

/** The path, including the Redis of this run, which scripts with another POSTHORN_DIR would not find. */
export const searchPath = () => [process.env.PATH, redisFolder].join(delimiter);

export interface Run {
  npm: ChildProcess;
  output: string[];
  ended: Promise<number | NodeJS.Signals | null>;
  said(text: string): Promise<unknown>;
}

/** Runs a script like a user. Whatever is left of it at the end of the test is killed. */
export function npmRun(script: string, env: Record<string, string>, args: string[] = []): Run {
  const npm = spawn('npm', ['run', script, '--', ...args], {
    cwd: root,
    env: { ...BASE_ENV, PATH: searchPath(), HOME: process.env.HOME ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  for (const stream of [npm.stdout!, npm.stderr!]) stream.on('data', (data) => output.push(String(data)));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    npm.once('close', (code, signal) => resolve(code ?? signal));
  });
  atEnd(() => {
    for (const pid of npm.exitCode === null && npm.signalCode === null ? [...descendantsOf(npm.pid!), npm.pid!] : [])
      process.kill(pid, 'SIGKILL');
  });
  const said = (text: string) =>
    eventually(
      () => `npm run ${script} to say ${text}; it said ${output.join('')}`,
      () => {
        if (output.join('').includes(text)) return true;
        if (npm.exitCode !== null) throw new Error(`npm exited: ${output.join('')}`);
        return false;
      },
      SAID_LIMIT_MS,
    );
  return { npm, output, ended, said };
}

/** Whether a process still runs; a zombie does not. */
function runs(pid: number): boolean {
  if (process.platform === 'linux') {
    const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '';
    return stat !== '' && !/\) [ZX] /.test(stat);
  }
  return (
    spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
      .stdout.trim()
      .replace(/^Z.*/, '') !== ''
  );
}

/** Sends SIGTERM to npm alone, and waits until everything that it had started has ended. */
export async function endsWithNpm({ npm, ended }: Run, atLeast: number): Promise<void> {
  await eventually('its processes', () => descendantsOf(npm.pid!).length >= atLeast);
  const started = descendantsOf(npm.pid!);
  npm.kill('SIGTERM');
  await ended;
  await eventually(`none of ${started} to be left`, () => !started.some(runs));
}
