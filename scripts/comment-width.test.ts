/** No line of a comment is wider than the code, which the formatter breaks at 120 columns. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from './folder.ts';

const FILES = [
  '*.{ts,yml}',
  'Dockerfile',
  '{apps,packages,tests,scripts,bench}/**/*.{ts,tsx,mjs,css,lua}',
  'deploy/**/*.yaml',
];
/** A table has no other way. */
const TOO_WIDE = /^(?! +\* \|)(?=\s*(?:\/\/|\/?\*+|--|#) ).{121,}$/gmu;

it('each line of a comment has at most 120 columns', () => {
  const files = globSync(FILES, { cwd: root, exclude: ['**/{dist*,node_modules,fixtures}/**'] });
  expect(files.length).toBeGreaterThan(500);
  const tooWide = files.flatMap((file) =>
    Array.from(readFileSync(join(root, file), 'utf8').matchAll(TOO_WIDE), ([line]) => `${file}: ${line}`),
  );
  expect(tooWide).toEqual([]);
});
