/** Collects the files of the image: built apps and page, sources, the packages that they need, bill of materials. */
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { root } from '../folder.ts';
import { APPS, type NeededPackage, neededPackages } from './packages.ts';
import { sbom } from './sbom.ts';

/** What the image needs of a workspace besides its sources. */
const OTHER_FILES: Record<string, string[]> = {
  'apps/cli': ['bin'],
  'apps/ingest': ['dist'],
  'apps/worker': ['dist'],
  'apps/console': ['dist', 'page/dist'],
};

/**
 * Writes the tree into `out`, which must be empty. The packages must have been installed, the apps and the page built.
 * Nothing in it depends on the architecture.
 */
export function writeTree(out: string): void {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { name, version, license, type } = manifest;
  mkdirSync(out, { recursive: true });
  if (readdirSync(out).length > 0) throw new Error(`${out} is not empty.`);
  writeFileSync(
    join(out, 'package.json'),
    `${JSON.stringify({ name, version, private: true, license, type }, null, 2)}\n`,
  );
  cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
  for (const one of neededPackages(APPS)) {
    if (one.isWorkspace) writeWorkspace(one, out);
    else writePackage(one.path, out);
  }
  writeFileSync(join(out, 'sbom.cdx.json'), `${JSON.stringify(sbom(version, process.versions.node), null, 2)}\n`);
  makeReadable(out);
}

function writeWorkspace({ name, path }: NeededPackage, out: string): void {
  for (const entry of ['package.json', 'src', ...(OTHER_FILES[path] ?? [])]) {
    cpSync(join(root, path, entry), join(out, path, entry), {
      recursive: true,
      filter: (file) => !/\.test\.ts$/.test(file) && !/^test-.*\.ts$/.test(basename(file)),
    });
  }
  const link = join(out, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(relative(dirname(link), join(out, path)), link);
}

/**
 * Copies a package without the packages below it, and without what Node does not run: sources in TypeScript,
 * declarations, source maps.
 */
function writePackage(path: string, out: string): void {
  const from = join(root, path);
  cpSync(from, join(out, path), {
    recursive: true,
    filter: (file) => file !== join(from, 'node_modules') && !/\.(map|[cm]?tsx?)$/.test(file),
  });
}

/** Lets every user read the files: only the builder of the page may enter its folder, and the umask may be strict. */
function makeReadable(dir: string): void {
  chmodSync(dir, 0o755);
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) makeReadable(path);
    else if (entry.isFile()) chmodSync(path, 0o644);
  }
}
