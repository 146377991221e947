/** Posthorn's version. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the version in the root package.json. */
export function readVersion(): string {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')).version;
}
