/** Builds the operators' page, unless what is there was built from the very same sources. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { explainFileError, root } from './folder.ts';

const page = join(root, 'apps/console/page');
const built = join(page, 'dist');

/** Builds it; says so with `say` before it begins, since that takes some seconds. Several may do so at once. `signal` breaks it off. */
export async function buildPage(say: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const digest = digestOfSources();
  const stamp = join(built, 'built-from');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  say("Building the operators' page ...");
  let fresh: string | undefined;
  try {
    // Before Vite runs: where nothing can be written, the file system's own error says more than Vite's.
    fresh = mkdtempSync(`${built}-`);
    await runVite(fresh, signal);
    writeFileSync(join(fresh, 'built-from'), digest);
    // In place of the old one at once, so that nobody is served half of each.
    rmSync(built, { recursive: true, force: true });
    renameSync(fresh, built);
  } catch (error) {
    // Another process has put the same page there in between.
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return;
    throw explainFileError(error, built) ?? error;
  } finally {
    if (fresh !== undefined) rmSync(fresh, { recursive: true, force: true });
  }
}

/** Runs Vite in a process of its own: what this one's NODE_ENV is says nothing about what is built. */
async function runVite(outDir: string, signal: AbortSignal | undefined): Promise<void> {
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  const args = [vite, 'build', page, '--outDir', outDir, '--emptyOutDir', '--logLevel', 'warn'];
  try {
    await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: 'production' }, signal });
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`The page could not be built:\n${stdout}${stderr || message}`, { cause: error });
  }
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
