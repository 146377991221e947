/** What a release consists of in this repository: one version in every file, a section of the changelog, a fixture. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { formatReleases } from '../../packages/store/src/format/formats.ts';

/** Where the version is written besides the manifests: the text around it. */
const OTHER_PLACES: readonly [file: string, before: string, after: string][] = [
  ['Dockerfile', 'ARG VERSION=', '\n'],
  ['deploy/helm/posthorn/Chart.yaml', '\nversion: ', '\n'],
  ['deploy/helm/posthorn/Chart.yaml', '\nappVersion: "', '"'],
  ['docs/wire/asyncapi.json', '"version": "', '"'],
];

const MANIFESTS = ['package.json', 'apps/*/package.json', 'packages/*/package.json'];

/** The manifests, as paths from `root`. */
const manifestsIn = (root: string) => globSync(MANIFESTS, { cwd: root }).sort();

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'));

/** The version of the checkout in `root`. */
export const versionOf = (root: string): string => readJson(join(root, 'package.json')).version;

/** Writes a version everywhere. Throws if it is none, or a place has disappeared. */
export function writeVersion(root: string, version: string): void {
  if (semver.valid(version) !== version) throw new Error(`${version} is not a version such as 1.2.3`);
  const before = versionOf(root);
  for (const manifest of manifestsIn(root))
    replace(join(root, manifest), `"version": "${before}"`, `"version": "${version}"`);
  for (const [file, start, end] of OTHER_PLACES) replace(join(root, file), start + before + end, start + version + end);
  const lock = join(root, 'package-lock.json');
  const locked = readJson(lock);
  locked.version = version;
  for (const manifest of manifestsIn(root))
    locked.packages[manifest.replace(/\/?package\.json$/, '')].version = version;
  writeFileSync(lock, `${JSON.stringify(locked, null, 2)}\n`);
}

function replace(file: string, old: string, replacement: string): void {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(old)) throw new Error(`${file} has no ${JSON.stringify(old)}`);
  writeFileSync(
    file,
    text.replace(old, () => replacement),
  );
}

/** The text of a version's section of the changelog, without its heading; undefined if there is none. */
export function notesOf(root: string, version: string): string | undefined {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  for (const section of changelog.split(/^(?=## )/m).slice(1)) {
    const end = section.indexOf('\n');
    const [name, date] = section.slice(3, end).split(' - ');
    if (name === version && (name === 'Unreleased' || /^\d{4}-\d\d-\d\d$/.test(date ?? '')))
      return section.slice(end).trim();
  }
  return undefined;
}

/** Returns notes for a page outside of this repository: their links lead to its files, on GitHub as of `version`. */
export function linkNotes(notes: string, version: string, repository: string): string {
  return notes.replace(/\]\((?!https?:)/g, `](https://github.com/${repository}/blob/v${version}/`);
}

/**
 * Returns what is wrong; empty if the checkout is consistent. A version such as 1.2.0-dev is one on which work goes on:
 * its notes are those of `Unreleased`, none at first, and it has no fixture yet. `tag`: the tag that is to be released.
 */
export function checkRelease(root: string, tag?: string): string[] {
  const version = versionOf(root);
  const problems: string[] = [];
  for (const manifest of manifestsIn(root)) {
    const own = readJson(join(root, manifest)).version;
    if (own !== version) problems.push(`${manifest} has version ${own}, not ${version}`);
  }
  const { packages } = readJson(join(root, 'package-lock.json'));
  for (const manifest of manifestsIn(root)) {
    const own = packages[manifest.replace(/\/?package\.json$/, '')]?.version;
    if (own !== version) problems.push(`package-lock.json has ${manifest} in version ${own}, not ${version}`);
  }
  for (const [file, start, end] of OTHER_PLACES) {
    if (!readFileSync(join(root, file), 'utf8').includes(start + version + end))
      problems.push(`${file} lacks ${(start + version).trim()}`);
  }
  const isRelease = semver.prerelease(version) === null;
  if (isRelease && !notesOf(root, version)) problems.push(`CHANGELOG.md has no notes under "## ${version}"`);
  if (!isRelease && notesOf(root, 'Unreleased') === undefined)
    problems.push('CHANGELOG.md has no section "## Unreleased"');
  const target = version.split('-')[0] ?? version;
  for (const [i, since] of formatReleases.entries()) {
    if (semver.gt(since, target))
      problems.push(`stored format ${i + 1} is said to begin with ${since}, after ${target}`);
  }
  for (const released of isRelease ? [...releasesIn(root), version] : releasesIn(root)) {
    if (!existsSync(join(root, 'tests/fixtures', `${released}.json`)))
      problems.push(`tests/fixtures/${released}.json is missing: npm run fixture writes that of this release`);
  }
  if (tag !== undefined && tag !== `v${version}`) problems.push(`the tag is ${tag}, the version ${version}`);
  return [...new Set(problems)];
}

/** The releases in the changelog. */
function releasesIn(root: string): string[] {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  return Array.from(changelog.matchAll(/^## (\d+\.\d+\.\d+) - /gm), ([, version = '']) => version);
}
