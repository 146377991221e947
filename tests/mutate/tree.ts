/** A temporary copy of the working tree, so that a mutation never changes the real one. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '../..');

/**
 * Copies every file that git tracks or would track. Installed packages are linked, but packages of the workspace are
 * linked to the copy, so that the copied apps import a mutated `packages/core`. Returns the path of the copy.
 */
export function copyTree(): string {
  const tree = mkdtempSync(join(tmpdir(), 'posthorn-mutate-'));
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: REPOSITORY,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const file of list.split('\0')) {
    // git also lists a file that was deleted but not committed.
    if (file !== '' && existsSync(join(REPOSITORY, file))) cpSync(join(REPOSITORY, file), join(tree, file));
  }
  linkPackages(tree);
  return tree;
}

export function removeTree(tree: string): void {
  rmSync(tree, { recursive: true, force: true });
}

function linkPackages(tree: string): void {
  const from = join(REPOSITORY, 'node_modules');
  for (const name of readdirSync(from)) {
    if (name !== '@posthorn') link(join(from, name), join(tree, 'node_modules', name));
  }
  for (const name of readdirSync(join(from, '@posthorn'))) {
    // A relative link such as `../../packages/core`: in the copy, it leads to the package in the copy.
    link(readlinkSync(join(from, '@posthorn', name)), join(tree, 'node_modules/@posthorn', name));
  }
  for (const group of ['apps', 'packages', 'tests']) {
    for (const name of readdirSync(join(REPOSITORY, group))) {
      const nested = join(REPOSITORY, group, name, 'node_modules');
      if (existsSync(nested)) link(nested, join(tree, group, name, 'node_modules'));
    }
  }
}

function link(to: string, at: string): void {
  mkdirSync(dirname(at), { recursive: true });
  symlinkSync(to, at);
}
