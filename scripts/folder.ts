/**
 * The folder for the files that Posthorn creates on this machine: found, created, and checked before anything relies on
 * it.
 */
import { accessSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..');

/** `.posthorn` in the checkout, or `POSTHORN_DIR`. */
export const dataDir = resolve(process.env.POSTHORN_DIR?.trim() || join(root, '.posthorn'));

/** A file or folder can't be used; the message says why and what to do. */
export class FolderProblem extends Error {
  override name = 'FolderProblem';
}

/**
 * Creates `dir` if it is missing. Throws `FolderProblem` if it, or anything directly in it, can't be read and written.
 */
export function prepareFolder(dir: string): void {
  try {
    makeFolder(dir);
    for (const path of [dir, ...readdirSync(dir).map((name) => join(dir, name))]) {
      accessSync(path, constants.R_OK | constants.W_OK | (statSync(path).isDirectory() ? constants.X_OK : 0));
    }
  } catch (error) {
    throw explainFileError(error, dir) ?? error;
  }
}

function makeFolder(dir: string): void {
  if (exists(dir)) return;
  try {
    mkdirSync(dir, { recursive: true });
  } catch (error) {
    // On a read-only file system, a recursive mkdir fails with this code; a plain one reports the cause.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    mkdirSync(dir);
  }
}

/** Returns the message for a file system error that the user can fix, or undefined for any other error. */
export function explainFileError(error: unknown, dir = dataDir): FolderProblem | undefined {
  const { code, path: at = dir } = error as NodeJS.ErrnoException;
  // The placeholder of mkdtemp for the random part.
  const path = at.replace(/-XXXXXX$/, '');
  // POSTHORN_DIR moves only the data, not what is built into the checkout.
  const elsewhere = isWithin(path, dataDir) ? '\nOr set POSTHORN_DIR to a folder that you can write to.' : '';
  const because = (words: string) => new FolderProblem(`Can't write to ${path}: ${words}`, { cause: error });
  switch (code) {
    case 'EROFS':
      return because(`its file system is read-only. Use a checkout that you can write to.${elsewhere}`);
    case 'ENOSPC':
    case 'EDQUOT':
      return because('no space is left. Free some space and start again.');
    case 'ENOTDIR':
    case 'EEXIST':
      return because('a file is where a folder should be. Remove it and start again.');
    case 'EACCES':
    case 'EPERM': {
      const uid = process.geteuid?.() ?? 0;
      const found = nearest(path);
      const owner = statSync(found).uid;
      if (owner === uid) return because(`its permissions forbid it. Run: chmod -R u+rwX ${shellWord(dir)}${elsewhere}`);
      if (whyUnseen(path) === 'EACCES')
        return because(`${userName(uid)} may not enter ${found}. Change its permissions.${elsewhere}`);
      // Change the owner of our own folder only. If it is missing, create it in the folder that belongs to somebody
      // else.
      const ours = [dir, root].find((one) => isWithin(path, one) && exists(one));
      const command =
        ours === undefined
          ? `install -d -o ${uid} ${shellWord(isWithin(path, dir) ? dir : path)}`
          : `chown -R ${uid} ${shellWord(ours)}`;
      return because(
        `it belongs to ${userName(owner)}, and you are ${userName(uid)}.\nRun: sudo ${command}${elsewhere}`,
      );
    }
    default:
      return undefined;
  }
}

/** In a container, a user may have no name. */
function userName(uid: number): string {
  return uid === 0 ? 'root' : `user ${uid}`;
}

/** Returns the path as one word of a shell. */
export function shellWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function isWithin(path: string, dir: string): boolean {
  return `${path}/`.startsWith(`${dir}/`);
}

/** The path itself, or its nearest ancestor whose status can be read. */
function nearest(path: string): string {
  return exists(path) || path === dirname(path) ? path : nearest(dirname(path));
}

function exists(path: string): boolean {
  return whyUnseen(path) === undefined;
}

/** The code of the error for reading the path's status. */
function whyUnseen(path: string): string | undefined {
  try {
    statSync(path);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}
