/**
 * helm, for the tests of the chart: found on the path, built by an earlier run, or built with Go, which downloads it as
 * a module.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { dataDir } from '../folder.ts';
import { moveInto } from './move-into.ts';

const VERSION = 'v4.3.1';

export type Found = { command: string } | { why: string };

interface ProvideHelmOptions {
  say: (line: string) => void;
  /** The folder that helm is built into, and the folders that commands are looked for in; for tests. */
  folder?: string;
  path?: string;
  /** Ends the build. */
  signal?: AbortSignal;
}

/**
 * Resolves with helm's path, or with why there is none. Building takes some minutes of CPU the first time, and seconds
 * when Go has its cache. It uses only what other programs leave. Several processes may build at once.
 */
export async function provideHelm({
  say,
  folder = join(dataDir, 'programs'),
  path = searchPath(),
  signal,
}: ProvideHelmOptions): Promise<Found> {
  const installed = findCommand('helm', path);
  if (installed !== undefined) return { command: installed };
  const target = join(folder, `helm-${VERSION}`);
  const built = { command: join(target, 'helm') };
  if (existsSync(built.command)) return built;
  const go = findGo(path);
  if (go === undefined) return { why: 'helm is not installed, and there is no Go to build it with' };
  say(`Building helm ${VERSION} into ${folder} (once) ...`);
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(folder, '.building-'));
  try {
    const output = await build(go, work, signal);
    if (output !== undefined) return { why: `helm could not be built: ${output}` };
    moveInto(work, target);
    return built;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Go's path, or undefined if it is not installed. */
export const findGo = (path = searchPath()): string | undefined => findCommand('go', path);

/** Go's own installer does not put it on the path. */
const searchPath = () => [process.env.PATH, '/usr/local/go/bin'].join(delimiter);

function findCommand(name: string, path: string): string | undefined {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Resolves with what Go says if it fails. */
async function build(go: string, into: string, signal?: AbortSignal): Promise<string | undefined> {
  // Without optimisation, which would take longer than it saves.
  const args = ['install', '-trimpath', '-ldflags=-s -w', '-gcflags=all=-N -l', `helm.sh/helm/v4/cmd/helm@${VERSION}`];
  const child = spawn('nice', ['-n', '19', go, ...args], {
    env: { ...process.env, GOBIN: into, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(signal && { signal }),
  });
  const lines: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => lines.push(text));
  const code = await new Promise((resolve) => {
    child.once('error', (error) => {
      lines.push(error.message);
      resolve(-1);
    });
    child.once('close', resolve);
  });
  if (code === 0) return undefined;
  return lines.join('').trim().split('\n').slice(-3).join('\n') || `go ended with ${String(code)}`;
}
