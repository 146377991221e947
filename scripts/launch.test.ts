/** What the launcher says where packages or Node itself are missing. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';

const folders: string[] = [];
afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true });
});

describe('a checkout that is not installed as it should be', () => {
  /** The launcher in a checkout with these packages. */
  function launch(packages: string[], program: string, flags: string[] = []) {
    const dir = mkdtempSync(join(tmpdir(), 'posthorn-launch-'));
    folders.push(dir);
    mkdirSync(join(dir, 'scripts'));
    cpSync(join(import.meta.dirname, 'launch.mjs'), join(dir, 'scripts/launch.mjs'));
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ devDependencies: { jest: '1', vite: '1' } }));
    for (const name of packages) mkdirSync(join(dir, 'node_modules', name), { recursive: true });
    mkdirSync(dirname(join(dir, program)), { recursive: true });
    writeFileSync(join(dir, program), 'console.log("started", process.argv.slice(2).join())');
    const args = [...flags, join(dir, 'scripts/launch.mjs'), program, 'a', 'b'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    return { status, stdout, stderr };
  }
  const started = { status: 0, stdout: 'started a,b\n', stderr: '' };

  it('is told to run npm ci where nothing is installed', () => {
    expect(launch([], 'scripts/x.ts')).toMatchObject({
      status: 1,
      stderr: 'The packages are not installed. Run: npm ci\n',
    });
  });
  it('is told which development packages are missing, and that the apps run without them', () => {
    const { status, stderr } = launch(['@posthorn', 'jest'], 'scripts/x.ts');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Development packages are missing \(vite\): .*--omit=dev.*\nRun: npm ci --include=dev\n/);
    expect(launch(['@posthorn', 'jest'], 'apps/x.ts')).toEqual(started);
    expect(launch(['@posthorn', 'jest', 'vite'], 'scripts/x.ts')).toEqual(started);
  });
  it('is told which Node it needs', () => {
    const { status, stderr } = launch(['@posthorn'], 'apps/x.ts', ['--no-strip-types']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Posthorn needs Node 24, and this is Node [\d.]+\. /);
  });
});
