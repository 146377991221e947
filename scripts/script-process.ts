/** Runs scripts of this repository (apps, and programs of tests and benchmarks) as processes, and stops processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from './folder.ts';

/** Lines of output that the error for a process that did not become ready quotes. */
const QUOTED_LINES = 5;

export interface ScriptProcess {
  child: ChildProcess;
  /** Resolves with the `ready` line; rejects, quoting the last lines of output, if the process ends before it. */
  ready: Promise<{ url: string }>;
  /**
   * Resolves with the exit code or signal after the process has ended and all its output is read; with -1 if it could
   * not be started.
   */
  ended: Promise<number | NodeJS.Signals>;
  /** Its last lines of output. */
  lastLines: readonly string[];
}

interface ScriptOptions {
  /** The name of the process in messages; default: the script. */
  name?: string;
  /** The complete environment of the process. */
  env: NodeJS.ProcessEnv;
  /** The checkout whose script it is; default: this one. */
  dir?: string;
  /** Called with each line of stdout and stderr. */
  onLine?: (line: string) => void;
  /** Whether it gets its own process group, which Ctrl-C in the terminal does not reach. */
  detached?: boolean;
}

/**
 * Starts `script`, a path from the root of the repository, with the Node of this process. It has an IPC channel, which
 * closes when this process ends for any reason; apps then stop.
 */
export function startScript(
  script: string,
  { name = script, env, dir = root, onLine, detached = false }: ScriptOptions,
): ScriptProcess {
  const child = spawn(process.execPath, [join(dir, script)], {
    cwd: dir,
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached,
  });
  const ready = Promise.withResolvers<{ url: string }>();
  const ended = Promise.withResolvers<number | NodeJS.Signals>();
  const lastLines: string[] = [];
  const read = (line: string) => {
    lastLines.push(line);
    if (lastLines.length > QUOTED_LINES) lastLines.shift();
    onLine?.(line);
    if (line.includes('"msg":"ready"')) ready.resolve(JSON.parse(line) as { url: string });
  };
  for (const stream of [child.stdout!, child.stderr!]) createInterface({ input: stream }).on('line', read);
  child.once('error', (error) => {
    read(error.message);
    ended.resolve(-1);
  });
  child.once('close', (code, signal) => ended.resolve(signal ?? code ?? -1));
  void ended.promise.then((end) => ready.reject(new Error(withLastLines(describeEnd(name, end), lastLines))));
  // Not every caller waits until the process is ready.
  ready.promise.catch(() => undefined);
  return { child, ready: ready.promise, ended: ended.promise, lastLines };
}

/** Returns a sentence, without its full stop, that says how a process ended. */
export function describeEnd(name: string, end: number | NodeJS.Signals): string {
  return `${name} ended (${typeof end === 'number' ? `code ${end}` : end})`;
}

/** Returns `what` and the last lines of output of a process, in readable form. */
export function withLastLines(what: string, lastLines: readonly string[]): string {
  if (lastLines.length === 0) return `${what}. It printed nothing.`;
  return `${what}. Its last output:\n  ${lastLines.map(readable).join('\n  ')}`;
}

/** Returns a log line in readable form: of JSON, the level, the message and the error's message. */
export function readable(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { level, msg, err } = JSON.parse(line) as { level?: string; msg?: string; err?: { message?: string } };
    return [level, [msg, err?.message].filter(Boolean).join(': ')].filter(Boolean).join(' ');
  } catch {
    // The process ended in the middle of this line.
    return line;
  }
}

/** Ends a process with SIGTERM, and with SIGKILL after `limitMs`. Resolves once it has exited. */
export async function stopChild(child: ChildProcess, limitMs: number): Promise<void> {
  // Without an id it was never started.
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  await ended;
  clearTimeout(timer);
}
