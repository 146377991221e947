/** The documents name no file that does not exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from './folder.ts';

const DOCUMENTS = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'deploy/**/*.md'], { cwd: root });
const PATH = /`((?:apps|packages|tests|scripts|bench|deploy|docs)\/[\w./-]+)`/g;
/** What builds and benches make. */
const MADE = /\/dist(\/|$)|^bench\/results\//;

it('each path in a document exists', () => {
  const named = DOCUMENTS.flatMap((document) =>
    Array.from(readFileSync(join(root, document), 'utf8').matchAll(PATH), ([, path = '']) => ({ document, path })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ path }) => !MADE.test(path) && !existsSync(join(root, path)))).toEqual([]);
});
