/** The checks of a release, on a copy of the files that they read. */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { root } from '../folder.ts';
import { checkRelease, linkNotes, notesOf, versionOf, writeVersion } from './release.ts';

const FILES = [
  'package.json',
  'package-lock.json',
  'CHANGELOG.md',
  'Dockerfile',
  'deploy/helm/posthorn/Chart.yaml',
  'docs/wire/asyncapi.json',
  'apps/*/package.json',
  'packages/*/package.json',
  'tests/fixtures/*.json',
];
/** The copy has this version and this changelog, so that the tests also pass in a checkout that is a release. */
const VERSION = '7.8.9-dev';
const CHANGELOG = `# Changelog

## Unreleased

### Changed

- Something.

## 0.1.0 - 2026-11-22

The first release.
`;
let copy: string;
beforeEach(() => {
  copy = join(root, '.posthorn', `release-${process.pid}`);
  for (const file of globSync(FILES, { cwd: root })) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  writeVersion(copy, VERSION);
  writeFileSync(join(copy, 'CHANGELOG.md'), CHANGELOG);
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));
const change = (file: string, edit: (text: string) => string) =>
  writeFileSync(join(copy, file), edit(readFileSync(join(copy, file), 'utf8')));

it('this checkout is consistent', () => {
  expect(checkRelease(root)).toEqual([]);
});
it('a version is written everywhere', () => {
  writeVersion(copy, '8.0.0-dev');
  expect(versionOf(copy)).toBe('8.0.0-dev');
  expect(checkRelease(copy)).toEqual([]);
  for (const file of ['Dockerfile', 'deploy/helm/posthorn/Chart.yaml', 'packages/client/package.json'])
    expect(readFileSync(join(copy, file), 'utf8')).toContain('8.0.0-dev');
  expect(() => writeVersion(copy, 'v7')).toThrow('not a version');
});
it('a release needs a section with a date, a fixture and its own tag', () => {
  writeVersion(copy, '7.8.9');
  expect(checkRelease(copy, 'v7.8.8')).toEqual([
    'CHANGELOG.md has no notes under "## 7.8.9"',
    'tests/fixtures/7.8.9.json is missing: npm run fixture writes that of this release',
    'the tag is v7.8.8, the version 7.8.9',
  ]);
  change('CHANGELOG.md', (text) => text.replace('## Unreleased', '## Unreleased\n\n## 7.8.9 - 2030-01-02'));
  writeFileSync(join(copy, 'tests/fixtures/7.8.9.json'), '{}');
  expect(checkRelease(copy, 'v7.8.9')).toEqual([]);
  expect(notesOf(copy, '7.8.9')).toMatch(/^### /);
  change('CHANGELOG.md', (text) => text.replace('7.8.9 - 2030-01-02', '7.8.9'));
  expect(checkRelease(copy)).toEqual(['CHANGELOG.md has no notes under "## 7.8.9"']);
});
it('notes link to the files of their release, not to pages beside that of the release on GitHub', () => {
  const notes = 'See [one](docs/a.md#b), [two](packages/client/README.md), [three](https://semver.org).';
  expect(linkNotes(notes, '1.2.3', 'owner/posthorn')).toBe(
    'See [one](https://github.com/owner/posthorn/blob/v1.2.3/docs/a.md#b), ' +
      '[two](https://github.com/owner/posthorn/blob/v1.2.3/packages/client/README.md), [three](https://semver.org).',
  );
});
it('after a release, the section of the next one may be empty, but not missing', () => {
  writeVersion(copy, '7.8.9');
  change('CHANGELOG.md', (text) => text.replace('## Unreleased', '## Unreleased\n\n## 7.8.9 - 2030-01-02'));
  writeFileSync(join(copy, 'tests/fixtures/7.8.9.json'), '{}');
  writeVersion(copy, '7.9.0-dev');
  expect(checkRelease(copy)).toEqual([]);
  change('CHANGELOG.md', (text) => text.replace('## Unreleased\n', ''));
  expect(checkRelease(copy)).toEqual(['CHANGELOG.md has no section "## Unreleased"']);
});
it('a manifest, the lock or another file with another version is found, and so is a missing fixture of an earlier release', () => {
  change('packages/client/package.json', (text) => text.replace(/"version": "[^"]+"/, '"version": "0.0.1"'));
  change('Dockerfile', (text) => text.replace(/ARG VERSION=.*/, 'ARG VERSION=0.0.1'));
  rmSync(join(copy, 'tests/fixtures/0.1.0.json'));
  expect(checkRelease(copy)).toEqual([
    `packages/client/package.json has version 0.0.1, not ${VERSION}`,
    `Dockerfile lacks ARG VERSION=${VERSION}`,
    'tests/fixtures/0.1.0.json is missing: npm run fixture writes that of this release',
  ]);
});
it('a stored format that begins after this version is found', () => {
  writeVersion(copy, '0.1.1-dev');
  expect(checkRelease(copy)).toEqual(['stored format 2 is said to begin with 0.2.0, after 0.1.1']);
});
