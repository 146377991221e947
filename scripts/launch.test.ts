/** The launcher's messages if packages or Node are missing. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';

const folders: string[] = [];
afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true });
});

describe('the launcher', () => {
  /** The launcher in a checkout that has these packages and this one file. */
  function launch(
    packages: string[],
    program: string,
    { flags = [], file = program }: { flags?: string[]; file?: string } = {},
  ) {
    const dir = mkdtempSync(join(tmpdir(), 'posthorn-launch-'));
    folders.push(dir);
    mkdirSync(join(dir, 'scripts'));
    cpSync(join(import.meta.dirname, 'launch.mjs'), join(dir, 'scripts/launch.mjs'));
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ devDependencies: { jest: '1', vite: '1' } }));
    for (const name of packages) mkdirSync(join(dir, 'node_modules', name), { recursive: true });
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), 'console.log("started", process.argv.slice(2).join())');
    const args = [...flags, join(dir, 'scripts/launch.mjs'), program, 'a', 'b'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    return { status, stdout, stderr };
  }
  const started = { status: 0, stdout: 'started a,b\n', stderr: '' };

  it('says to run npm ci if nothing is installed', () => {
    expect(launch([], 'scripts/x.ts')).toMatchObject({
      status: 1,
      stderr: 'The packages are not installed. Run: npm ci\n',
    });
  });
  it('names missing development packages, without which the apps still run', () => {
    const { status, stderr } = launch(['@posthorn', 'jest'], 'scripts/x.ts');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Development packages are missing \(vite\): .*--omit=dev.*\nRun: npm ci --include=dev\n/);
    expect(launch(['@posthorn', 'jest'], 'apps/x.ts')).toEqual(started);
    expect(launch(['@posthorn', 'jest'], 'scripts/build.ts')).toEqual(started);
    expect(launch(['@posthorn', 'jest', 'vite'], 'scripts/x.ts')).toEqual(started);
  });
  it('runs an app that is not built from its sources', () => {
    const built = 'apps/x/dist/main.cjs';
    expect(launch(['@posthorn'], built)).toEqual(started);
    expect(launch(['@posthorn'], built, { file: 'apps/x/src/main.ts' })).toEqual(started);
  });
  it('names the Node that is needed', () => {
    const { status, stderr } = launch(['@posthorn'], 'apps/x.ts', { flags: ['--no-strip-types'] });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Posthorn needs Node 24, and this is Node [\d.]+\. /);
    // Without development packages, `npx posthorn` has no Node of its own.
    const cli = join(import.meta.dirname, '../apps/cli/bin/posthorn.js');
    expect(spawnSync(process.execPath, ['--no-strip-types', cli], { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^posthorn needs Node 24, and this is Node .* npm ci --include=dev/),
    });
  });
});
