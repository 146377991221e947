/** Folders that are built: when they are built anew, and what others see meanwhile. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { buildFolder, isBuiltFrom } from './build-folder.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-build-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('a folder that is built', () => {
  const sourceOf = (text: string) => {
    const source = join(dir, 'source');
    writeFileSync(source, text);
    return [source];
  };
  const built = () => join(dir, 'built');
  const writing = (text: string) => async (into: string) => writeFileSync(join(into, 'file'), text);
  const content = () => readFileSync(join(built(), 'file'), 'utf8');

  it('is current until its sources change', async () => {
    expect(isBuiltFrom(built(), sourceOf('1'))).toBe(false);
    await buildFolder(built(), sourceOf('1'), writing('of 1'));
    expect(isBuiltFrom(built(), sourceOf('1'))).toBe(true);
    expect(isBuiltFrom(built(), sourceOf('2'))).toBe(false);
    await buildFolder(built(), sourceOf('2'), writing('of 2'));
    expect(content()).toBe('of 2');
  });
  it('can be read by whoever can read what is beside it', async () => {
    mkdirSync(join(dir, 'beside'));
    await buildFolder(built(), sourceOf('1'), writing('of 1'));
    expect(statSync(built()).mode).toBe(statSync(join(dir, 'beside')).mode);
  });
  it('stays as it is if the build fails, and nothing else is left', async () => {
    await buildFolder(built(), sourceOf('1'), writing('of 1'));
    const failing = buildFolder(built(), sourceOf('2'), async (into) => {
      mkdirSync(join(into, 'half'));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(content()).toBe('of 1');
    expect(readdirSync(dir).sort()).toEqual(['built', 'source']);
  });
  it('is left alone if another process has built the same meanwhile', async () => {
    const sources = sourceOf('1');
    await buildFolder(built(), sources, async (into) => {
      await buildFolder(built(), sources, writing('the other'));
      await writing('this')(into);
    });
    expect(content()).toBe('the other');
    expect(readdirSync(dir).sort()).toEqual(['built', 'source']);
  });
});
