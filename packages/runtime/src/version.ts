/** Which release this is. */
import { readFileSync } from 'node:fs';

/** Posthorn's version, from the root package.json. */
export const version: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version;

/** How Posthorn names itself to receivers. */
export const USER_AGENT = `Posthorn/${version}`;
