/** What `provideRuntime` says where there is no runtime. tests/runtimes.test.ts shows that it finds those there are. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { deno, provideRuntime } from './runtimes.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'posthorn-runtimes-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const here = `${process.platform}-${process.arch}`;

it('says that npm has none for this platform', async () => {
  expect(await provideRuntime({ ...deno, packages: {} }, folder)).toEqual({ why: `npm has no deno for ${here}.` });
});

it('says why it could not be downloaded, and leaves nothing behind', async () => {
  const packages = { [here]: 'file:/missing/deno' };
  expect(await provideRuntime({ ...deno, packages }, folder)).toEqual({
    why: expect.stringMatching(/^deno could not be downloaded: /),
  });
  expect(readdirSync(folder)).toEqual([]);
});
