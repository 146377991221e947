/**
 * Builds a package that is published: plain JavaScript with types, in `packages/<name>/dist`, which `npm publish` takes
 * as it is.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../folder.ts';

/** The packages that are published. */
export const PUBLISHED = ['client', 'receiver'] as const;

/**
 * Returns the folder of the package. `repository` is the one on GitHub, as its workflows name it. Both defaults are for
 * all but tests.
 */
export function buildPackage(
  name: string,
  out = join(root, 'packages', name, 'dist'),
  repository = process.env.GITHUB_REPOSITORY,
): string {
  const source = join(root, 'packages', name);
  rmSync(out, { recursive: true, force: true });
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', join(source, 'tsconfig.build.json'), '--outDir', out], {
    stdio: 'inherit',
  });
  for (const file of readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith('.d.ts'))) {
    const path = join(out, file);
    // The compiler rewrites the extensions of imports in code, but not in declarations.
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(from '\.{1,2}\/[^']*)\.ts'/g, "$1.js'"));
  }
  const {
    exports: sources,
    devDependencies: _,
    ...manifest
  } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const exports = Object.fromEntries(Object.entries<string>(sources).map(([path, file]) => [path, builtFiles(file)]));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packed = { ...manifest, version, ...repositoryField(name, repository), exports };
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
  copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
  if (existsSync(join(source, 'README.md'))) copyFileSync(join(source, 'README.md'), join(out, 'README.md'));
  return out;
}

/** npm refuses the provenance of a package that names no repository, or another one than that of the workflow. */
function repositoryField(name: string, repository: string | undefined) {
  if (!repository) return {};
  return {
    repository: { type: 'git', url: `git+https://github.com/${repository}.git`, directory: `packages/${name}` },
  };
}

function builtFiles(source: string) {
  const base = source.replace('./src/', './').replace(/\.ts$/, '');
  return { types: `${base}.d.ts`, default: `${base}.js` };
}
