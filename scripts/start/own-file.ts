/** The JSON files of `npm start`, which only their owner can read. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** Returns what the file has, or undefined if there is none. Throws with `advice` if it is damaged. */
export function readOwnFile<T>(file: string, advice: string): T | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch (cause) {
    throw new Error(`${file} is damaged. ${advice}`, { cause });
  }
}

/** Replaces the file as a whole, so that nobody reads half of it, and a full disk or a kill leaves the old one. */
export function writeOwnFile(file: string, content: object): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
