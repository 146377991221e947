/** One app of `npm start` as a child process: starts it, waits until it is ready, logs to a file, stops it. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { describeEnd, readable, startScript, stopChild, withLastLines } from '../script-process.ts';

export interface AppProcess {
  name: string;
  /** Where it listens. */
  url: string;
  /** Resolves with a sentence, without its full stop, when the process ends by itself. */
  ended: Promise<string>;
}

/** Only an app that hangs takes longer. */
const START_LIMIT_MS = 60_000;
/** Longer than the grace period of the apps. */
const STOP_LIMIT_MS = 25_000;

interface AppOptions {
  env: Record<string, string>;
  logDir: string;
  /** Called with a function that ends the process, as soon as the process exists. */
  atEnd: (end: () => Promise<void>) => void;
  startLimitMs?: number;
  say: (line: string) => void;
  /** Whether the warnings of its start are said. */
  saysWarnings?: boolean;
}

/**
 * Starts an app and resolves after it has logged `ready`. Its log goes to `<logDir>/<name>.log`. Rejects, naming the
 * log and quoting its last lines, if the app ends before that or is not ready in time.
 */
export async function startApp(
  name: string,
  { env, logDir, atEnd, say, startLimitMs = START_LIMIT_MS, saysWarnings = false }: AppOptions,
): Promise<AppProcess> {
  const logFile = join(logDir, `${name}.log`);
  const log = createWriteStream(logFile, { flags: 'a' });
  // Such as a full disk. The stream has ended then, and drops all further lines.
  log.once('error', ({ message }) => say(`The log of ${name} has ended: ${message}`));
  let isStarting = true;
  const { child, ready, ended, lastLines } = startScript(`apps/${name}/src/main.ts`, {
    name,
    env: { ...process.env, ...env },
    onLine(line) {
      log.write(`${line}\n`);
      if (saysWarnings && isStarting && line.includes('"level":"warn"')) say(readable(line));
    },
    // Ctrl-C in the terminal is handled by this process, which stops the apps in order.
    detached: true,
  });
  atEnd(() => stopChild(child, STOP_LIMIT_MS));
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(withLastLines(`${name} was not ready after ${startLimitMs / 1000} s`, lastLines)));
  }, startLimitMs);
  try {
    const { url } = await Promise.race([ready, late.promise]);
    return { name, url, ended: ended.then((end) => describeEnd(name, end)) };
  } catch (error) {
    throw new Error(`${(error as Error).message}\nThe whole log: ${logFile}`);
  } finally {
    isStarting = false;
    clearTimeout(timer);
  }
}
