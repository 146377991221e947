/** The command line on a terminal: what it asks, colors, its progress bar, and Ctrl-C. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Receiver } from '@posthorn/testing';
import { python } from '../scripts/programs/programs.ts';
import { providePrograms } from '../scripts/programs/provide.ts';
import { atEnd, ownReceiver, ownWorld } from './own.ts';
import { BASE_ENV } from './processes.ts';
import { POSTHORN } from './run-posthorn.ts';
import { OPERATOR_TOKEN, type World } from './world.ts';

/**
 * Runs a program on a terminal, types keys once it has written a text, and ends as a shell does: 128 and the signal.
 */
const ON_TERMINAL = `
import os, pty, sys
awaited, keys, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
seen, typed = b'', False
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:
        break
    if not some:
        break
    seen += some
    if awaited.encode() in seen and not typed:
        typed = True
        os.write(terminal, keys.encode())
sys.stdout.buffer.write(seen)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
`;
const CTRL_C = '\x03';
const CTRL_D = '\x04';
const WRAPS_NO_LINES = '\x1b[?7l';
const WRAPS_LINES = '\x1b[?7h';

let on: World;
let to: Receiver;
let interpreter: string;
beforeAll(async () => {
  interpreter = (await providePrograms([python], { say: () => undefined }))[python.name]!;
});
beforeEach(async () => {
  on = await ownWorld();
  to = await ownReceiver();
});

async function posthorn(url: string, args: string[], { keys = '', after = '', env = {} } = {}) {
  const command = [process.execPath, POSTHORN, ...args];
  const child = spawn(interpreter, ['-c', ON_TERMINAL, after, keys, ...command], {
    env: { ...BASE_ENV, TERM: 'xterm', POSTHORN_URL: url, POSTHORN_TOKEN: OPERATOR_TOKEN, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The end of the terminal ends the command line too.
  atEnd(() => child.kill('SIGKILL'));
  const [shown, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, shown };
}

describe('a question', () => {
  it.each([
    ['y\r', 0],
    ['n\r', 1],
    [CTRL_C, 1],
    [CTRL_D, 1],
  ])('that is answered with %j ends with exit code %i', async (keys, code) => {
    const { id } = await on.subscribe(to.url);
    const ran = await posthorn(on.consoleUrl, ['delete', id], { keys, after: '[y/N]' });
    expect(ran).toEqual({
      code,
      shown: expect.stringContaining(code === 0 ? `Deleted ${id}.` : 'Nothing was deleted.'),
    });
    expect(ran.shown).not.toContain('AbortError');
    expect((await on.operate('GET', `/v1/subscriptions/${id}`)).status).toBe(code === 0 ? 404 : 200);
  });
});

describe('a status', () => {
  it.each([
    [{}, '\x1b[32mactive\x1b[39m'],
    [{ NO_COLOR: '1' }, ' active '],
  ])('is in color on a terminal, but not with NO_COLOR: %j', async (env, status) => {
    await on.subscribe(to.url);
    const { code, shown } = await posthorn(on.consoleUrl, ['list'], { env });
    expect([code, shown]).toEqual([0, expect.stringContaining(status)]);
  });
});

describe('a bulk replay', () => {
  let id: string;
  let started: { id: string };
  beforeEach(async () => {
    ({ id } = await on.subscribe(to.url));
    started = (await on.operate('POST', '/v1/replays', { subscription_id: id })).body;
  });
  const goesOn = () => `${started.id} goes on without this command: see "posthorn show ${started.id}".`;
  /** A console that has started the replay, and then does as `progress` says. */
  const consoleWith = (progress: (response: { end(text: string): void; destroy(): void }) => void) =>
    to.answerWith(({ method }, response) => {
      const running = JSON.stringify({ ...started, status: 'running', total: 2, finished_at: null });
      if (method === 'POST') response.end(running);
      else progress({ end: () => response.end(running), destroy: () => response.destroy() });
    });

  it('that is not reached any more ends the command, and leaves the terminal as it was', async () => {
    consoleWith((response) => response.destroy());
    const { code, shown } = await posthorn(to.url, ['replay', id]);
    expect([code, shown]).toEqual([1, expect.stringContaining(goesOn())]);
    expect(shown.lastIndexOf(WRAPS_LINES)).toBeGreaterThan(shown.indexOf(WRAPS_NO_LINES));
  });

  it('goes on after Ctrl-C, which says so and leaves the terminal as it was', async () => {
    consoleWith((response) => response.end(''));
    const { code, shown } = await posthorn(to.url, ['replay', id], { keys: CTRL_C, after: 'Replaying' });
    expect([code, shown]).toEqual([130, expect.stringContaining(goesOn())]);
    expect(shown.lastIndexOf(WRAPS_LINES)).toBeGreaterThan(shown.indexOf(WRAPS_NO_LINES));
  });
});
