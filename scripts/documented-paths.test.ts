/**
 * The documents name no file or function that does not exist, link to no heading that does not, and are 120 columns
 * wide.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from './folder.ts';

const DOCUMENTS = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'deploy/**/*.md'], { cwd: root });
const PATH = /`((?:apps|packages|tests|scripts|bench|deploy|docs)\/[\w./-]+)`/g;
/** What builds and benches make. */
const MADE = /\/dist(\/|$)|^bench\/results\//;
/** A row of a table, indented code, a code span alone, a link alone. */
const CANNOT_BREAK = /^ *\||^ {4}|^(- )?!?(`[^`]+`|\[[^\]]+\]\([^)]+\))\S*$/;

it('each path in a document exists', () => {
  const named = DOCUMENTS.flatMap((document) =>
    Array.from(readFileSync(join(root, document), 'utf8').matchAll(PATH), ([, path = '']) => ({ document, path })),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter(({ path }) => !MADE.test(path) && !existsSync(join(root, path)))).toEqual([]);
});

it('each name of the code that a contributor reads is in the code', () => {
  const files = globSync(['*.ts', '{apps,packages,scripts,tests}/**/*.{ts,tsx,lua}'], {
    cwd: root,
    exclude: ['**/{dist*,node_modules}/**'],
  });
  const code = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const names = ['CONTRIBUTING.md', 'docs/architecture.md', 'docs/glossary.md'].flatMap((document) =>
    Array.from(readFileSync(join(root, document), 'utf8').matchAll(/`([a-z]+[A-Z]\w*)`/g), ([, name = '']) => name),
  );
  expect(names.length).toBeGreaterThan(15);
  // `fooBar` stands for any name.
  expect(names.filter((name) => name !== 'fooBar' && !code.includes(name))).toEqual([]);
});

/** How GitHub names the anchor of a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** The anchors of a document; none in another file. */
function anchorsIn(file: string): string[] {
  if (!file.endsWith('.md')) return [];
  const text = readFileSync(file, 'utf8').replaceAll(/^```.*?^```$/gms, '');
  return Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = '']) => anchorOf(heading));
}

it('each link of a document leads to a file, and to a heading in it', () => {
  const links = DOCUMENTS.flatMap((document) =>
    Array.from(readFileSync(join(root, document), 'utf8').matchAll(/\]\((?!\w+:)([^)\s]+)\)/g), ([, link = '']) => {
      const [path = '', anchor] = link.split('#');
      return { link, document, file: join(root, path === '' ? document : join(dirname(document), path)), anchor };
    }),
  );
  expect(links.length).toBeGreaterThan(200);
  const leadsNowhere = links.filter(
    ({ file, anchor }) => !existsSync(file) || (anchor !== undefined && !anchorsIn(file).includes(anchor)),
  );
  expect(leadsNowhere.map(({ document, link }) => `${document}: ${link}`)).toEqual([]);
});

it('no line of a document but the changelog is wider than 120 columns', () => {
  const wide = DOCUMENTS.filter((document) => document !== 'CHANGELOG.md').flatMap((document) => {
    const text = readFileSync(join(root, document), 'utf8');
    const lines = text.replaceAll(/^ *```.*?^ *```$/gms, (code) => code.replaceAll(/./g, '')).split('\n');
    return lines.flatMap((line, i) => (line.length > 120 && !CANNOT_BREAK.test(line) ? [`${document}:${i + 1}`] : []));
  });
  expect(wide).toEqual([]);
});
