/** One app as a child process: started, waited for until it is ready, watched, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../folder.ts';

export interface AppProcess {
  name: string;
  /** Where it listens. */
  url: string;
  /** Resolves with a sentence when it ends by itself. */
  ended: Promise<string>;
}

/** Only an app that hangs takes that long. */
const START_LIMIT_MS = 60_000;
/** Longer than the grace that the apps have themselves. */
const STOP_LIMIT_MS = 25_000;

export interface AppOptions {
  env: Record<string, string>;
  logDir: string;
  /** Called as soon as there is a process, with what ends it. */
  atEnd: (end: () => Promise<void>) => void;
  startLimitMs?: number;
}

/**
 * Starts an app and resolves once it has logged `ready`. Its log goes to `<logDir>/<name>.log`. Rejects, naming that log and quoting its
 * end, where the app ends before or is not ready in time.
 */
export async function startApp(
  name: string,
  { env, logDir, atEnd, startLimitMs = START_LIMIT_MS }: AppOptions,
): Promise<AppProcess> {
  const child = spawn(process.execPath, [join(root, `apps/${name}/src/main.ts`)], {
    cwd: root,
    env: { ...process.env, ...env },
    // The IPC channel ends with this process, however that ends, and the app with it.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Ctrl-C in the terminal is for this process; it stops the apps in order.
    detached: true,
  });
  const logFile = join(logDir, `${name}.log`);
  const log = createWriteStream(logFile, { flags: 'a' });
  const lastLines: string[] = [];
  const keep = (line: string) => {
    log.write(`${line}\n`);
    lastLines.push(inWords(line));
    if (lastLines.length > 5) lastLines.shift();
  };
  const ended = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(`${name} ended (${signal ?? `code ${code}`})`));
    child.once('error', (error) => resolve(`${name} could not be started: ${error.message}`));
  });
  atEnd(() => stopChild(child, ended));
  createInterface({ input: child.stderr! }).on('line', keep);
  const failed = (what: string) => {
    const tail = lastLines.length === 0 ? 'It wrote nothing.' : `It wrote last:\n  ${lastLines.join('\n  ')}`;
    return new Error(`${what}. ${tail}\nAll of it is in ${logFile}.`);
  };
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(failed(`${name} was not ready after ${startLimitMs / 1000} s`)),
      startLimitMs,
    );
    createInterface({ input: child.stdout! }).on('line', (line) => {
      keep(line);
      if (!line.includes('"msg":"ready"')) return;
      clearTimeout(timer);
      resolve(String((JSON.parse(line) as { url: string }).url));
    });
    void ended.then((why) => {
      clearTimeout(timer);
      reject(failed(why));
    });
  });
  return { name, url, ended };
}

/** A line of a log as a person reads it: of JSON, the message and the error's. */
function inWords(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { level, msg, err } = JSON.parse(line) as { level?: string; msg?: string; err?: { message?: string } };
    return [level, [msg, err?.message].filter(Boolean).join(': ')].filter(Boolean).join(' ');
  } catch {
    // Cut off in the middle.
    return line;
  }
}

async function stopChild(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}
