/** Builds a folder from its sources: only if they have changed, and so that nobody ever sees half of it. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { explainFileError, root } from './folder.ts';

/** In each folder that is built: the digest of what it was built from. */
const STAMP = 'built-from';

/** Whether `folder` was built from these files, as they are now. */
export function isBuiltFrom(folder: string, sources: readonly string[]): boolean {
  const stamp = join(folder, STAMP);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === digestOf(sources);
}

/**
 * Builds `folder` with `write`, which gets an empty folder beside it, and puts the result in its place at once. Several
 * processes may do so at the same time. Throws a `FolderProblem` if a user can help it.
 */
export async function buildFolder(
  folder: string,
  sources: readonly string[],
  write: (into: string) => Promise<void>,
): Promise<void> {
  const digest = digestOf(sources);
  let fresh: string | undefined;
  try {
    // Before the build: if the folder can't be written, the file system's own error says more than the builder's.
    fresh = mkdtempSync(`${folder}-`);
    // Which only this user could read: a service may run as another one.
    const into = join(fresh, 'built');
    mkdirSync(into);
    await write(into);
    // Another process has built the same meanwhile, and something may run from there already.
    if (isBuiltFrom(folder, sources)) return;
    writeFileSync(join(into, STAMP), digest);
    rmSync(folder, { recursive: true, force: true });
    renameSync(into, folder);
  } catch (error) {
    // Another process has put the same build there meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return;
    throw explainFileError(error, folder) ?? error;
  } finally {
    if (fresh !== undefined) rmSync(fresh, { recursive: true, force: true });
  }
}

/** Returns a digest of the names and contents of files; ignores folders. */
function digestOf(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of [...files].sort())
    if (statSync(file).isFile()) hash.update(file.slice(root.length)).update(readFileSync(file));
  return hash.digest('hex');
}
