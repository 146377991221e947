/** A package that is published, as npm would deliver it: alone in an empty project. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackage } from '../scripts/pack/build-package.ts';
import { ownDir } from './own.ts';

/**
 * Builds and packs a package and installs it, alone, in an empty project. Returns the folders of both, which are in
 * `dir`.
 */
export function installPackage(name: string, dir = ownDir()): { built: string; project: string } {
  const built = buildPackage(name, join(dir, 'built'), 'owner/posthorn');
  const project = join(dir, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  const npm = (args: string[]) => execFileSync('npm', args, { cwd: project, encoding: 'utf8' });
  const tarball = npm(['pack', '--silent', built]).trim().split('\n').at(-1)!;
  npm(['install', '--silent', '--offline', '--no-audit', '--no-fund', `./${tarball}`]);
  return { built, project };
}
