/**
 * Starts a program of this repository, or prints why it can't start. Plain JavaScript, because it must also run on Node
 * 20.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [program = '', ...args] = process.argv.slice(2);

/** @returns {string | undefined} what is wrong and how to fix it */
function problem() {
  if (!existsSync(join(root, 'node_modules/@posthorn'))) return 'The packages are not installed. Run: npm ci';
  // Apps and the command line run without development packages, and what is built stays; everything else needs them.
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const missing = Object.keys(devDependencies).filter((name) => !existsSync(join(root, 'node_modules', name)));
  if (missing.length > 0 && !program.startsWith('apps/') && program !== 'scripts/build.ts') {
    const some = missing.slice(0, 3).join(', ') + (missing.length > 3 ? ` and ${missing.length - 3} more` : '');
    return (
      `Development packages are missing (${some}): they were left out by --omit=dev or NODE_ENV=production.\n` +
      'Run: npm ci --include=dev\n' +
      'Without them only the apps run: npm run start:ingest, start:worker, start:console, posthorn.'
    );
  }
  if (!process.features.typescript) {
    return `Posthorn needs Node 24, and this is Node ${process.versions.node}. Install Node 24, or run: npm ci --include=dev (it brings one)`;
  }
  return undefined;
}

/** What an app was or would be built from: it runs as well, with more memory. */
const sourceOf = (built) => built.replace(/\/dist\/main\.cjs$/, '/src/main.ts');

const words = problem();
if (words === undefined) {
  const file = join(root, existsSync(join(root, program)) ? program : sourceOf(program));
  process.argv = [process.argv[0], file, ...args];
  await import(pathToFileURL(file).href);
} else {
  process.stderr.write(`${words}\n`);
  process.exitCode = 1;
}
