/** The check of package-lock.json in lint: what it accepts, and what it reports. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { addOtherPlatforms, dropEngines, dropUnverified, type Lock, lockProblems } from '../scripts/lockfile.ts';

const root = join(import.meta.dirname, '..');
const readLock = () => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;

function problemsAfter(change: (packages: Lock['packages']) => void): string[] {
  const lock = readLock();
  change(lock.packages);
  return lockProblems(lock, root);
}

describe('package-lock.json', () => {
  it('has a hash for everything that is installed here', () => {
    expect(lockProblems(readLock(), root)).toEqual([]);
  });
  it('needs a hash for each kind of installed package: of production, of development, and for this platform alone', () => {
    const forThisPlatform = Object.entries(readLock().packages).find(
      ([path, { optional, os }]) => optional && os !== undefined && existsSync(join(root, path)),
    );
    for (const path of ['node_modules/zod', 'node_modules/jest', forThisPlatform![0]]) {
      const problems = problemsAfter((packages) => delete packages[path]!.integrity);
      expect(problems).toEqual([`${path} has no integrity hash`]);
    }
  });
  it('may lack a hash only for an optional package of another platform', () => {
    const unsupported = { version: '1.0.0', optional: true };
    const entry = { ...unsupported, os: ['aix'] };
    expect(problemsAfter((packages) => (packages['node_modules/not-here'] = entry))).toEqual([]);
    for (const wrong of [{ ...entry, optional: false }, unsupported]) {
      const problems = problemsAfter((packages) => (packages['node_modules/not-here'] = wrong));
      expect(problems).toEqual(['node_modules/not-here has no integrity hash']);
    }
  });
  it('may not have URLs of downloads, so that npm uses the registry that it is configured for', () => {
    const from = (resolved: string) => problemsAfter((packages) => (packages['node_modules/zod']!.resolved = resolved));
    expect(from('https://mirror.example.com/zod.tgz')).toEqual([
      expect.stringMatching(/^node_modules\/zod has a "resolved" URL/),
    ]);
  });
  it('leaves engines out, so that npm does not compare them with the Node that it runs on', () => {
    const lock = readLock();
    lock.packages['node_modules/zod']!.engines = { node: '>=99' };
    expect(lockProblems(lock, root)).toEqual([expect.stringMatching(/^node_modules\/zod has "engines"/)]);
    dropEngines(lock);
    expect(lock).toEqual(readLock());
    expect(lock.packages['']!.engines).toEqual({ node: '>=24' });
  });
  it('is completed with packages of other platforms, and packages without a hash are resolved again', () => {
    const lock = readLock();
    dropUnverified(lock);
    const added = addOtherPlatforms(lock);
    expect(lock).toEqual(readLock());
    for (const path of added) expect(lock.packages[path]).toMatchObject({ optional: true, os: [expect.any(String)] });
    expect(addOtherPlatforms(lock)).toEqual([]);
  });
});
