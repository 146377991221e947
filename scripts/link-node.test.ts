/** The Node that npm scripts run on: it is linked also by an npm that leaves it out. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { root } from './folder.ts';

const PROGRAM = `node-linux-${process.arch}/bin/node`;
let dir: string;
let command: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-link-'));
  command = join(dir, 'node_modules/.bin/node');
  mkdirSync(join(dir, 'node_modules/.bin'), { recursive: true });
  cpSync(join(root, 'scripts/node/link.mjs'), join(dir, 'scripts/node/link.mjs'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function installed(): void {
  mkdirSync(join(dir, 'node_modules', PROGRAM, '..'), { recursive: true });
  writeFileSync(join(dir, 'node_modules', PROGRAM), 'the program');
}

function link(): void {
  const { status, stderr } = spawnSync(process.execPath, [join(dir, 'scripts/node/link.mjs')], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
}

describe('the Node of the development packages', () => {
  it('is linked where npm has left it out, and only once', () => {
    installed();
    for (let i = 0; i < 2; i++) link();
    expect(readlinkSync(command)).toBe(`../${PROGRAM}`);
    expect(readFileSync(command, 'utf8')).toBe('the program');
  });
  it('replaces a link that leads nowhere', () => {
    installed();
    symlinkSync('../node-linux-other/bin/node', command);
    link();
    expect(readlinkSync(command)).toBe(`../${PROGRAM}`);
  });
  it('is not linked if it is not installed, or npm has linked one', () => {
    link();
    expect(existsSync(command)).toBe(false);
    installed();
    writeFileSync(command, 'of npm');
    link();
    expect(readFileSync(command, 'utf8')).toBe('of npm');
  });
  it('is linked by npm after each installation', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(scripts.postinstall).toBe('node scripts/node/link.mjs');
  });
});
