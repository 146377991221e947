/** Moving a finished folder into its place. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { moveInto } from './move-into.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-move-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function folder(name: string): string {
  mkdirSync(join(dir, name));
  writeFileSync(join(dir, name, 'file'), name);
  return join(dir, name);
}

it('leaves what another process has put there meanwhile', () => {
  const place = join(dir, 'place');
  moveInto(folder('first'), place);
  moveInto(folder('second'), place);
  expect(readFileSync(join(place, 'file'), 'utf8')).toBe('first');
  expect(existsSync(join(dir, 'second'))).toBe(true);
});

it('throws every other error', () => {
  expect(() => moveInto(join(dir, 'none'), join(dir, 'place'))).toThrow('ENOENT');
});
