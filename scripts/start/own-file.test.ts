/** The files of `npm start`, when writing or reading one fails. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadState } from './keys.ts';
import { writeOwnFile } from './own-file.ts';
import { claimRun } from './run-file.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-keys-'));
  file = join(dir, 'keys.json');
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('the keys of npm start', () => {
  it('are the same in the next run, and for their owner alone', () => {
    expect(loadState(file)).toEqual(loadState(file));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
  it('do not change if the file cannot be written', () => {
    const before = loadState(file);
    // A folder makes the write fail, as a full disk would.
    mkdirSync(`${file}.new`);
    expect(() => writeOwnFile(file, { ...before, publisherKey: 'other' })).toThrow();
    expect(loadState(file)).toEqual(before);
  });
  it('are in a file that the error names if it is damaged, with what deleting it means', () => {
    writeFileSync(file, '{"publisherKey":');
    expect(() => loadState(file)).toThrow(`${file} is damaged. Restore it, or delete the folder ${dir} to begin anew`);
  });
});

describe('the run of npm start', () => {
  it('leaves no file that refuses the next one where the disk is full', () => {
    const run = join(dir, 'running.json');
    // In place of a full disk.
    mkdirSync(`${run}.new`);
    expect(() => claimRun(run)).toThrow();
    expect(existsSync(run)).toBe(false);
  });
  it('is not refused because of an earlier one that is gone, also if that had the id of this process', () => {
    const run = join(dir, 'running.json');
    const redis = { pid: 1, port: 6379 };
    for (const pid of [process.pid, 2 ** 30]) {
      writeOwnFile(run, { pid, redis });
      expect(claimRun(run)).toEqual({ pid, redis });
    }
    writeOwnFile(run, { pid: process.ppid });
    expect(() => claimRun(run)).toThrow(`already runs from this folder (process ${process.ppid})`);
  });
});
