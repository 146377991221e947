/** Runs a Node program to its end, and kills it with everything it has started when asked to. */
import { spawn } from 'node:child_process';

export interface Ended {
  /** `hung`: it was killed after `limitMs`. */
  how: 'succeeded' | 'failed' | 'hung';
  /** The last part of its output. */
  output: string;
}

interface RunOptions {
  cwd: string;
  env?: Record<string, string>;
  limitMs: number;
  /** Kills the program; the run then rejects. */
  signal: AbortSignal;
}

const MAX_OUTPUT_CHARS = 8_000;

/** Runs `node` with these arguments. Rejects when `signal` fires or the program can't be started. */
export function runNode(args: readonly string[], options: RunOptions): Promise<Ended> {
  options.signal.throwIfAborted();
  const child = spawn(process.execPath, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // In its own process group, so that everything it has started can be killed with it.
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT_CHARS);
    });
  }
  return new Promise((resolve, reject) => {
    let hung = false;
    const kill = () => process.kill(-child.pid!, 'SIGKILL');
    const timer = setTimeout(() => {
      hung = true;
      kill();
    }, options.limitMs);
    options.signal.addEventListener('abort', kill);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      options.signal.removeEventListener('abort', kill);
      if (options.signal.aborted) reject(options.signal.reason);
      else resolve({ how: hung ? 'hung' : code === 0 ? 'succeeded' : 'failed', output });
    });
  });
}
