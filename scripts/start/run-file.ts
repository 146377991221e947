/**
 * The file that says what runs from this folder: written by `npm start`, read by the next one and by the command line.
 */
import { closeSync, openSync, rmSync } from 'node:fs';
import { readOwnFile, writeOwnFile } from './own-file.ts';
import type { AppName } from './ports.ts';

/** What `npm start` publishes while it runs. */
export interface Run {
  /** The process of `npm start`; the rest is valid only while that runs. */
  pid: number;
  /** The Redis that it started, which outlives it if it is killed. */
  redis?: { pid: number; port: number };
  urls?: Record<AppName, string>;
  /** The file that contains the operator's token. */
  keysFile?: string;
}

/**
 * Registers this process as the one that runs from the folder, and returns what an earlier run left. Throws if another
 * one runs.
 */
export function claimRun(file: string): Run | undefined {
  const before = readOwnFile<Run>(file, 'If no npm start runs from this folder, delete it.');
  // In a container that is started again, this process may have the id of the one before.
  if (before !== undefined && before.pid !== process.pid && isAlive(before.pid)) {
    throw new Error(
      `Posthorn already runs from this folder (process ${before.pid}). Stop it with Ctrl-C first.\n` +
        `If process ${before.pid} is another program, delete ${file}.`,
    );
  }
  if (before !== undefined) rmSync(file, { force: true });
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    throw new Error('Another npm start began in this folder at the same moment; this one exits.', { cause });
  }
  try {
    writeOwnFile(file, { pid: process.pid, ...(before?.redis && { redis: before.redis }) });
  } catch (error) {
    // Such as a full disk. Empty, it would refuse the next run.
    rmSync(file);
    throw error;
  }
  return before;
}

/** Whether a process with this id exists, even one of another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
