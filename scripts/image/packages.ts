/** Which packages a running app needs, from package-lock.json: the same for every architecture. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../folder.ts';

/** The apps in the image. */
export const APPS = ['apps/ingest', 'apps/worker', 'apps/console', 'apps/cli'];

/** What package-lock.json says about the package at a path. */
interface Locked {
  name?: string;
  version?: string;
  resolved?: string;
  integrity?: string;
  license?: string;
  /** A link to the workspace at `resolved`. */
  link?: boolean;
  os?: string[];
  cpu?: string[];
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
  devDependencies?: Record<string, string>;
}

export interface NeededPackage extends Locked {
  name: string;
  /** Where it is, relative to the root. */
  path: string;
  isWorkspace: boolean;
}

const lock = (): Record<string, Locked> => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;

/**
 * The workspaces at `from` and every package that they need to run, by path. Optional packages are left out: they are
 * binaries for one architecture, and the packages that use them work without. With `bundled`, the packages that the
 * operators' page is built from instead: at run time they have no folder of their own.
 */
export function neededPackages(from: readonly string[], { bundled = false } = {}): NeededPackage[] {
  const locked = lock();
  const found = new Map<string, NeededPackage>();
  const visit = (path: string, isRoot: boolean) => {
    const entry = locked[path];
    if (entry === undefined || found.has(path)) return;
    const name = entry.name ?? path.replace(/^.*node_modules\//, '');
    found.set(path, { ...entry, name, path, isWorkspace: !path.includes('node_modules/') });
    for (const dependency of bundled && isRoot ? bundledBy(entry) : requiredBy(entry)) {
      const at = resolve(locked, path, dependency);
      visit(locked[at]?.link ? (locked[at]?.resolved ?? '') : at, false);
    }
  };
  for (const path of from) visit(path, true);
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

const requiredBy = ({ dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {}, ...rest }: Locked) => [
  ...Object.keys(dependencies).filter((name) => !(name in (rest.optionalDependencies ?? {}))),
  ...Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional),
];

/** The page's dependencies, without the tools that only build it. */
const bundledBy = ({ devDependencies = {} }: Locked) =>
  Object.keys(devDependencies).filter((name) => !/^(@types\/|@vitejs\/|vite$|@posthorn\/)/.test(name));

/** The path of a dependency of the package at `from`, found as Node finds it. Throws if it is not installed. */
function resolve(locked: Record<string, Locked>, from: string, name: string): string {
  for (let dir = from; ; dir = dir.replace(/(^|\/)(?:node_modules\/)?(?:@[^/]+\/)?[^/]+$/, '')) {
    const path = `${dir === '' ? '' : `${dir}/`}node_modules/${name}`;
    if (locked[path] !== undefined) return path;
    if (dir === '') throw new Error(`package-lock.json has no ${name}, which ${from} needs. Run: npm install`);
  }
}
