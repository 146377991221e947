/** The named and the accepted mutations of `npm run mutate`: a change of the source must not leave them behind. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from '../scripts/folder.ts';
import { ACCEPTED } from './mutate/accepted.ts';
import { locate, NAMED } from './mutate/named.ts';

it.each(NAMED)('can be made in the source: $name', (mutation) => {
  const { end, start } = locate(mutation);
  expect(end - start).toBe(mutation.original.length);
});

it.each(ACCEPTED)('is accepted of what the source still has: $file $original', ({ file, original }) => {
  expect(readFileSync(join(root, file), 'utf8')).toContain(original);
});
