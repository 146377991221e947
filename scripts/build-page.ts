/** Builds the operators' page, unless what is there was built from the very same sources. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const page = join(root, 'apps/console/page');
const built = join(page, 'dist');

/** Builds it; says so with `say` before it begins, since that takes some seconds. Several may do so at once. */
export function buildPage(say: (line: string) => void): void {
  const digest = digestOfSources();
  const stamp = join(built, 'built-from');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  say("Building the operators' page ...");
  const fresh = `${built}-${process.pid}`;
  // In a process of its own: what this one's NODE_ENV is says nothing about what is built.
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', page, '--outDir', fresh, '--emptyOutDir', '--logLevel', 'warn'];
  const ran = spawnSync(process.execPath, args, {
    env: { ...process.env, NODE_ENV: 'production' },
    encoding: 'utf8',
  });
  if (ran.status !== 0) throw new Error(`The page could not be built:\n${ran.stdout}${ran.stderr}`);
  writeFileSync(join(fresh, 'built-from'), digest);
  // In place of the old one at once, so that nobody is served half of each.
  rmSync(built, { recursive: true, force: true });
  renameSync(fresh, built);
}

function digestOfSources(): string {
  const files = [
    ...globSync('{index.html,vite.config.ts,src/**/*,public/**/*}', { cwd: page }).map((file) => join(page, file)),
    join(root, 'package-lock.json'),
  ];
  const hash = createHash('sha256');
  for (const file of files.sort())
    if (statSync(file).isFile()) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest('hex');
}
