/** Builds the operators' page, unless the existing build is from the same sources. */
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { buildFolder, isBuiltFrom } from './build-folder.ts';
import { root } from './folder.ts';

const page = join(root, 'apps/console/page');
const built = join(page, 'dist');

/**
 * Builds the page; reports the start with `say`, since it takes some seconds. Several processes may build at once.
 * `signal` aborts it.
 */
export async function buildPage(say: (line: string) => void, signal?: AbortSignal): Promise<void> {
  const files = sources();
  if (isBuiltFrom(built, files)) return;
  say("Building the operators' page ...");
  await buildFolder(built, files, async (into) => {
    await runVite(into, signal);
    await compressFiles(into);
  });
}

/** Runs Vite in its own process, because the NODE_ENV of this process must not affect the build. */
async function runVite(outDir: string, signal: AbortSignal | undefined): Promise<void> {
  if (/[#?]/.test(root)) {
    throw new Error(
      `The operators' page can't be built in ${root}: Vite can't read paths with # or ?. Move the checkout.`,
    );
  }
  const vite = join(root, 'node_modules/vite/bin/vite.js');
  if (!existsSync(vite)) {
    throw new Error("The operators' page can't be built: development packages are missing.\nRun: npm ci --include=dev");
  }
  const args = [vite, 'build', page, '--outDir', outDir, '--emptyOutDir', '--logLevel', 'warn'];
  try {
    await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: 'production' }, signal });
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`The page could not be built:\n${stdout}${stderr || message}`, { cause: error });
  }
}

/**
 * Writes a file compressed with brotli and one with gzip beside each text file, at the highest level: the console
 * serves them as they are.
 */
async function compressFiles(folder: string): Promise<void> {
  const compressions = [
    { extension: '.br', compress: promisify(brotliCompress) },
    { extension: '.gz', compress: (content: Buffer) => promisify(gzip)(content, { level: 9 }) },
  ];
  for (const file of globSync('**/*.{js,css,svg}', { cwd: folder }).map((name) => join(folder, name)))
    for (const { extension, compress } of compressions)
      writeFileSync(`${file}${extension}`, await compress(readFileSync(file)));
}

function sources(): string[] {
  return [
    ...globSync('{index.html,vite.config.ts,src/**/*,public/**/*}', { cwd: page }).map((file) => join(page, file)),
    ...['package-lock.json', 'scripts/build-page.ts', 'scripts/build-folder.ts'].map((file) => join(root, file)),
  ];
}
