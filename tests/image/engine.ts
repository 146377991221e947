/**
 * A container engine, if one works here and has the images that the Dockerfile starts from; it builds the image and
 * runs containers.
 */
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { root } from '../../scripts/folder.ts';

const run = promisify(execFile);

/** If a pull takes longer, there is no registry. */
const PULL_LIMIT_MS = 120_000;
const BUILD_LIMIT_MS = 1_500_000;

export interface Engine {
  command: 'docker' | 'podman';
  /** Builds the image of this checkout under a tag. */
  build(tag: string): Promise<void>;
  /** The standard output of a command of the engine. Rejects with what it says if it fails. */
  call(...args: string[]): Promise<string>;
}

/** Commands that fail without a working engine: docker's client alone succeeds at most others. */
const PROBE = {
  docker: ['version', '--format', '{{.Server.Version}}'],
  podman: ['info', '--format', '{{.Host.Arch}}'],
};

/** The images that the Dockerfile starts from. */
const baseImages = (): string[] =>
  Array.from(readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^ARG \w+_IMAGE=(.+)$/gm), ([, name]) => name!);

/** Resolves with an engine that can build the image here, or with the reason why there is none. */
export async function findEngine(): Promise<Engine | { why: string }> {
  const reasons: string[] = [];
  for (const command of ['docker', 'podman'] as const) {
    const call = async (...args: string[]) => (await run(command, args, { maxBuffer: 64 * 1024 * 1024 })).stdout;
    try {
      await call(...PROBE[command]);
      for (const image of baseImages()) await have(command, image);
    } catch (error) {
      reasons.push(`${command}: ${(error as Error).message.trim().split('\n').at(-1)}`);
      continue;
    }
    // OCI's own format has no HEALTHCHECK.
    const format = command === 'podman' ? ['--format', 'docker'] : [];
    return {
      command,
      call,
      async build(tag) {
        await run(command, ['build', ...format, '--network=host', '-t', tag, root], {
          timeout: BUILD_LIMIT_MS,
          maxBuffer: 64 * 1024 * 1024,
        });
      },
    };
  }
  return { why: `no container engine can build it here (${reasons.join('; ')})` };
}

async function have(command: string, image: string): Promise<void> {
  try {
    await run(command, ['image', 'inspect', image]);
  } catch {
    await run(command, ['pull', '-q', image], { timeout: PULL_LIMIT_MS });
  }
}

export interface Container {
  /** Resolves with the `ready` line; rejects with what was printed if the container ends before it. */
  ready: Promise<{ url: string }>;
  /** The exit code. */
  ended: Promise<number>;
}

/** Starts a container that shares the host's network, as hardened as in docker-compose.yml, and follows its log. */
export function startContainer(
  { command }: Engine,
  { tag, name, app, env }: { tag: string; name: string; app: string; env: Record<string, string> },
): Container {
  const options = ['--rm', '--name', name, '--network=host', '--read-only', '--cap-drop=ALL'];
  const variables = Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
  const child = spawn(
    command,
    ['run', ...options, '--security-opt=no-new-privileges', ...variables, tag, 'node', `apps/${app}/dist/main.cjs`],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const ready = Promise.withResolvers<{ url: string }>();
  const ended = Promise.withResolvers<number>();
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      printed.push(line);
      if (line.includes('"msg":"ready"')) ready.resolve(JSON.parse(line) as { url: string });
    });
  }
  child.once('error', (error) => printed.push(error.message));
  child.once('close', (code) => {
    ready.reject(new Error(`${name} ended with ${code}: ${printed.join('\n')}`));
    ended.resolve(code ?? -1);
  });
  // The test may fail before it waits for it.
  ready.promise.catch(() => undefined);
  return { ready: ready.promise, ended: ended.promise };
}
