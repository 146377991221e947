/** Finds the console to call, and the token for it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isHeaderText } from '@posthorn/core';
import { UserError } from './user-error.ts';

interface Console {
  url: string;
  token: string;
  /** Where the token comes from, for error messages. */
  tokenFrom: string;
}

/**
 * Returns the console at `POSTHORN_URL` with the token in `POSTHORN_TOKEN`. If these are not set, returns the one
 * started by `npm start` in this checkout; its token is sent to no other console. There is no option for a token,
 * because other users of a machine can read the command line. Throws `UserError`.
 */
export function findConsole(env: NodeJS.ProcessEnv): Console {
  // As from a script's variable that is not set.
  for (const name of ['POSTHORN_URL', 'POSTHORN_TOKEN'])
    if (env[name]?.trim() === '') throw new UserError(`${name} is empty: set it, or unset it.`);
  const running = env.POSTHORN_URL === undefined || env.POSTHORN_TOKEN === undefined ? findNpmStart(env) : undefined;
  const url = (env.POSTHORN_URL ?? running?.url ?? 'http://127.0.0.1:3001').trim().replace(/\/+$/, '');
  if (!/^https?:\/\//i.test(url))
    throw new UserError(`POSTHORN_URL must begin with http:// or https://. It is ${url}.`);
  // They are secret, and fetch would refuse them with a message that has them.
  const { username, password } = URL.parse(url) ?? {};
  if (username || password) throw new UserError('POSTHORN_URL must not carry a user or password.');
  if (env.POSTHORN_TOKEN !== undefined) {
    if (!isHeaderText(env.POSTHORN_TOKEN.trim()))
      throw new UserError('POSTHORN_TOKEN has characters that no operator token has: copy it again.');
    return { url, token: env.POSTHORN_TOKEN, tokenFrom: 'POSTHORN_TOKEN' };
  }
  if (running !== undefined && url === running.url) return running;
  throw new UserError(
    env.POSTHORN_URL === undefined
      ? 'Posthorn is not running from this checkout. Run npm start, or set POSTHORN_URL and POSTHORN_TOKEN to a console and an operator token.'
      : `Set POSTHORN_TOKEN to an operator token of the console at ${url}.`,
  );
}

/** Returns the console started by `npm start` in this checkout, or undefined if none is running. */
function findNpmStart(env: NodeJS.ProcessEnv): Console | undefined {
  const dir = env.POSTHORN_DIR?.trim() || join(import.meta.dirname, '../../../.posthorn');
  const file = join(dir, 'running.json');
  if (!existsSync(file)) return undefined;
  try {
    const { pid, urls, keysFile } = readJson(file) as { pid: number; urls?: { console: string }; keysFile?: string };
    if (urls === undefined || keysFile === undefined || !isAlive(pid)) return undefined;
    const { operatorToken } = readJson(keysFile) as { operatorToken: string };
    return { url: urls.console, token: operatorToken, tokenFrom: `npm start (${keysFile})` };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UserError(`Cannot read the files written by npm start: ${why}. Set POSTHORN_URL and POSTHORN_TOKEN.`, {
      cause,
    });
  }
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Returns whether a process is alive, even one of another user: a run that was killed leaves its file behind. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
