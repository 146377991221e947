/** One app as a child process: started, waited for until it is ready, watched, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface AppProcess {
  name: string;
  /** Where it listens. */
  url: string;
  /** Resolves with a sentence when it ends by itself. */
  ended: Promise<string>;
  stop(): Promise<void>;
}

const START_LIMIT_MS = 30_000;
/** Longer than the grace that the apps have themselves. */
const STOP_LIMIT_MS = 25_000;

/** Starts an app and resolves once it has logged `ready`. Its log goes to `logDir`. Rejects with what it said if it ends before. */
export async function startApp(
  name: string,
  root: string,
  env: Record<string, string>,
  logDir: string,
): Promise<AppProcess> {
  const child = spawn(process.execPath, [join(root, `apps/${name}/src/main.ts`)], {
    cwd: root,
    env: { ...process.env, ...env },
    // The IPC channel ends with this process, however that ends, and the app with it.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Ctrl-C in the terminal is for this process; it stops the apps in order.
    detached: true,
  });
  const log = createWriteStream(join(logDir, `${name}.log`), { flags: 'a' });
  const lastLines: string[] = [];
  const keep = (line: string) => {
    log.write(`${line}\n`);
    lastLines.push(line);
    if (lastLines.length > 10) lastLines.shift();
  };
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(`${name} ended (${signal ?? `code ${code}`})`));
    child.once('error', (error) => resolve(`${name} could not be started: ${error.message}`));
  });
  createInterface({ input: child.stderr! }).on('line', keep);
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${name} was not ready after ${START_LIMIT_MS / 1000} s`)),
      START_LIMIT_MS,
    );
    createInterface({ input: child.stdout! }).on('line', (line) => {
      keep(line);
      if (!line.includes('"msg":"ready"')) return;
      clearTimeout(timer);
      resolve(String((JSON.parse(line) as { url: string }).url));
    });
    void ended.then((why) => {
      clearTimeout(timer);
      reject(new Error(`${why}. It said:\n${lastLines.join('\n')}`));
    });
  });
  return { name, url, ended, stop: () => stopChild(child, ended) };
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(timer);
}
