/**
 * Completes package-lock.json after `npm install` (`npm run lockfile`), and checks it (`--check`, part of `npm run
 * lint`).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { satisfies, subset } from 'semver';

interface Entry {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  inBundle?: boolean;
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
  os?: string | string[];
  cpu?: string | string[];
  libc?: string | string[];
  engines?: unknown;
  optionalDependencies?: Record<string, string>;
}

export interface Lock {
  packages: Record<string, Entry>;
}

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];

/** The entries that npm downloads: neither the project's own packages, nor packages bundled in another one. */
function downloads(lock: Lock): [path: string, entry: Entry][] {
  return Object.entries(lock.packages).filter(
    ([path, entry]) => path.includes('node_modules/') && !entry.link && !entry.inBundle,
  );
}

/** Removes the entries without a hash, so that npm asks the registry for them again. */
export function dropUnverified(lock: Lock): void {
  for (const [path, entry] of downloads(lock)) if (entry.integrity === undefined) delete lock.packages[path];
}

/**
 * Removes the Node versions that packages require. npm would compare them with the Node that npm itself runs on, and
 * warn; the code runs on another Node (scripts/node), with which `lockProblems` compares them.
 */
export function dropEngines(lock: Lock): void {
  for (const [, entry] of downloads(lock)) delete entry.engines;
}

/**
 * Adds the optional packages of other platforms that the registry did not offer: without them `npm ci` refuses the
 * lock. Such an entry has a version and a platform, but no hash; npm skips it on every other platform. Returns the
 * paths added.
 */
export function addOtherPlatforms(lock: Lock): string[] {
  const added: string[] = [];
  for (const parent of Object.values({ ...lock.packages })) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      const path = `node_modules/${name}`;
      const words = name.split(/[/-]/);
      const system = SYSTEMS.find((one) => words.includes(one));
      if (lock.packages[path] || system === undefined || !/^\d+\.\d+\.\d+/.test(version)) continue;
      const processor = PROCESSORS.find((one) => words.some((word) => word.startsWith(one)));
      const libc = words.includes('musl') ? 'musl' : words.includes('gnu') ? 'glibc' : undefined;
      lock.packages[path] = {
        version,
        ...(processor === undefined ? {} : { cpu: [processor] }),
        ...(parent.dev ? { dev: true } : {}),
        ...(system === 'linux' && libc !== undefined ? { libc: [libc] } : {}),
        optional: true,
        os: [system],
      };
      added.push(path);
    }
  }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  return added;
}

/**
 * Returns what is wrong with the lock of the project in `root`, one line each: a package without a hash that is
 * installed here (or on every platform), one with a `resolved` URL, and one that does not run on our Node. All packages
 * must accept the Node of this process, and those of production every version that `engines` in package.json names.
 */
export function lockProblems(lock: Lock, root: string): string[] {
  const ourNodes = readJson<{ engines: { node: string } }>(join(root, 'package.json')).engines.node;
  return downloads(lock).flatMap(([path, entry]) => {
    const manifest = join(root, path, 'package.json');
    const installed = existsSync(manifest);
    const isForOtherPlatform = entry.optional === true && entry.os !== undefined && !installed;
    const range = installed ? readJson<{ engines?: { node?: string } }>(manifest).engines?.node : undefined;
    const isProduction = !entry.dev && !entry.devOptional;
    return [
      ...(entry.integrity === undefined && !isForOtherPlatform ? ['has no integrity hash'] : []),
      ...(entry.resolved === undefined
        ? []
        : ['has a "resolved" URL: npm should find packages by name, in whatever registry it is configured for']),
      ...(entry.engines === undefined ? [] : ['has "engines", about which npm would warn']),
      ...(range !== undefined && !satisfies(process.version, range)
        ? [`needs Node ${range}, not ${process.version}`]
        : []),
      ...(range !== undefined && isProduction && !subset(ourNodes, range)
        ? [`needs Node ${range}, but "engines" in package.json allows ${ourNodes}`]
        : []),
    ].map((problem) => `${path} ${problem}`);
  });
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}

function main(root: string, check: boolean): void {
  const file = join(root, 'package-lock.json');
  const lock = readJson<Lock>(file);
  if (check) {
    const problems = lockProblems(lock, root);
    if (problems.length === 0) return;
    console.error(`package-lock.json (npm run lockfile fixes what it can):\n  ${problems.join('\n  ')}`);
    process.exitCode = 1;
    return;
  }
  const write = (content: Lock) => writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  dropUnverified(lock);
  write(lock);
  const npm = spawnSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: root, stdio: 'inherit' });
  if (npm.status !== 0) throw new Error(`npm install --package-lock-only exited with ${npm.status ?? npm.signal}`);
  const resolved = readJson<Lock>(file);
  dropEngines(resolved);
  const added = addOtherPlatforms(resolved);
  write(resolved);
  console.log(`package-lock.json: complete, ${added.length} packages of other platforms without a hash`);
}

if (process.argv[1] === import.meta.filename) main(join(import.meta.dirname, '..'), process.argv.includes('--check'));
