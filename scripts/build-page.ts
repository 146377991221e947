/** Builds the operators' page, unless the existing build is from the same sources. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { explainFileError, root } from './folder.ts';

const page = join(root, 'apps/console/page');
const built = join(page, 'dist');

/** Builds the page; reports the start with `say`, since it takes some seconds. Several processes may build at once. `signal` aborts it. */
export async function buildPage(say: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const digest = digestOfSources();
  const stamp = join(built, 'built-from');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  say("Building the operators' page ...");
  let fresh: string | undefined;
  try {
    // Before Vite runs: if the folder can't be written, the file system's own error says more than Vite's.
    fresh = mkdtempSync(`${built}-`);
    await runVite(fresh, signal);
    await compressFiles(fresh);
    writeFileSync(join(fresh, 'built-from'), digest);
    // Replaces the old build at once, so that nobody is served half of each.
    rmSync(built, { recursive: true, force: true });
    renameSync(fresh, built);
  } catch (error) {
    // Another process has put the same page there meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return;
    throw explainFileError(error, built) ?? error;
  } finally {
    if (fresh !== undefined) rmSync(fresh, { recursive: true, force: true });
  }
}

/** Runs Vite in its own process, because the NODE_ENV of this process must not affect the build. */
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

/** Writes a file compressed with brotli and one with gzip beside each text file, at the highest level: the console serves them as they are. */
async function compressFiles(folder: string): Promise<void> {
  const compressions = [
    { extension: '.br', compress: promisify(brotliCompress) },
    { extension: '.gz', compress: (content: Buffer) => promisify(gzip)(content, { level: 9 }) },
  ];
  for (const file of globSync('**/*.{js,css,svg}', { cwd: folder }).map((name) => join(folder, name)))
    for (const { extension, compress } of compressions)
      writeFileSync(`${file}${extension}`, await compress(readFileSync(file)));
}

function digestOfSources(): string {
  const files = [
    ...globSync('{index.html,vite.config.ts,src/**/*,public/**/*}', { cwd: page }).map((file) => join(page, file)),
    join(root, 'package-lock.json'),
    join(root, 'scripts/build-page.ts'),
  ];
  const hash = createHash('sha256');
  for (const file of files.sort())
    if (statSync(file).isFile()) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest('hex');
}
