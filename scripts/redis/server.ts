/** Starts and stops a Redis server on a free port of this machine; finds or downloads the program. */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import { redisServer } from '../programs/programs.ts';
import { providePrograms } from '../programs/provide.ts';
import { stopChild } from '../script-process.ts';

export interface OwnRedis {
  url: string;
  port: number;
  pid: number;
  stop(): Promise<void>;
}

/** Only a Redis that hangs or loads many gigabytes takes longer. */
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 5_000;
/** What a Redis that has loaded its data replies to `PING`, even if only to ask for a password. */
const HAS_LOADED = /^(\+PONG|-NOAUTH)/;
/**
 * Writes to disk before it replies, so that no acknowledged write is lost; never evicts, since every key belongs to a
 * delivery.
 */
const SETTINGS = [
  '--bind',
  '127.0.0.1',
  '--appendonly',
  'yes',
  '--appendfsync',
  'always',
  '--save',
  '',
  '--maxmemory-policy',
  'noeviction',
  // Otherwise all stands still while it frees a long list that expires (docs/redis.md).
  '--lazyfree-lazy-expire',
  'yes',
  // With a limit Redis refuses writes when it is full; without one the kernel may kill it, or the apps.
  '--maxmemory',
  String(Math.floor(totalmem() / 2)),
];

interface StartOptions {
  say: (line: string) => void;
  /**
   * Called with a function that ends the process, as soon as that is started: the caller may end before it is ready.
   */
  atEnd?: (end: () => Promise<void>) => void;
  /** Called at the same moment: a caller that is killed leaves this process behind. */
  spawned?: (process: { pid: number; port: number }) => void;
  signal?: AbortSignal;
}

/** Starts a server with its data in `dir`, on `port` or a free one, and waits until it responds. */
export async function startRedis(
  dir: string,
  { port: wanted, extra = [], ...options }: StartOptions & { port?: number | undefined; extra?: string[] },
): Promise<OwnRedis> {
  const port = wanted ?? (await freePort());
  const args = ['--port', String(port), '--dir', dir, ...SETTINGS, ...extra];
  return await startServer(dir, { port, args, ...options });
}

/**
 * Starts the server program with these arguments and waits until it responds on `port`. `startRedis` passes the usual
 * arguments.
 */
export async function startServer(
  dir: string,
  { port, args, say, atEnd, spawned, signal }: StartOptions & { port: number; args: string[] },
): Promise<OwnRedis> {
  const server = (await providePrograms([redisServer], signal ? { say, signal } : { say }))[redisServer.name]!;
  mkdirSync(dir, { recursive: true });
  const logFile = join(dir, 'redis.log');
  const log = openSync(logFile, 'a');
  // In its own process group: Ctrl-C in the terminal then ends the apps first, and Redis after them.
  const child = spawn(server, args, { stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  atEnd?.(() => stopChild(child, STOP_LIMIT_MS));
  if (child.pid !== undefined) spawned?.({ pid: child.pid, port });
  const died = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code) => resolve(`it exited with code ${code}`));
  });
  const endsAt = Date.now() + START_LIMIT_MS;
  while (!HAS_LOADED.test(await replyToPing(port))) {
    const why = await Promise.race([
      died,
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 50)),
    ]);
    if (why !== undefined || Date.now() > endsAt) {
      await stopChild(child, STOP_LIMIT_MS);
      const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-6).join('\n  ');
      const what = why ?? `it did not respond within ${START_LIMIT_MS / 1000} s`;
      throw new Error(`Redis (${server}) did not start: ${what}. The end of its log, ${logFile}:\n  ${tail}`);
    }
  }
  return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid!, stop: () => stopChild(child, STOP_LIMIT_MS) };
}

/** Waits while a Redis on this port of this machine loads its data. Returns whether it responds then. */
export async function answersOnceLoaded(port: number): Promise<boolean> {
  let reply = await replyToPing(port);
  while (reply.startsWith('-LOADING')) {
    await wait(100);
    reply = await replyToPing(port);
  }
  return HAS_LOADED.test(reply);
}

/** The beginning of what responds to `PING` on a port of this machine; empty if nothing does. */
function replyToPing(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const done = (reply: string) => {
      socket.destroy();
      resolve(reply);
    };
    socket.setTimeout(1_000, () => done(''));
    socket.on('error', () => done(''));
    socket.once('data', (data) => done(data.toString()));
  });
}
