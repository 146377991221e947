/** Functions that are assigned to properties: how they are rewritten, and that they are then collected early. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { youngClosures } from './young-closures.ts';

const run = promisify(execFile);

/**
 * Makes 60 MB of objects, each with a function that refers to 300 bytes, and keeps the last. Prints by how many MB the
 * old generation has grown.
 */
const COMMANDS = `
  const { getHeapSpaceStatistics } = require('node:v8');
  const oldBytes = () => getHeapSpaceStatistics().find((space) => space.space_name === 'old_space').space_used_size;
  function command() {
    const args = new Array(30).fill(1);
    const made = {};
    made.reject = () => args;
    return made;
  }
  let last = command();
  gc();
  gc();
  const before = oldBytes();
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 3_000; i++) last = command();
    gc({ type: 'minor' });
  }
  console.log((oldBytes() - before) / 1e6);
`;

describe('a function that is assigned to a property', () => {
  it.each([
    ['object.property = () => 1;', 'object.property = (0, () => 1);'],
    ['a[b] = function named() {}', 'a[b] = (0, function named() {})'],
    ['a.b = async (c) => { c.d = () => {}; };', 'a.b = (0, async (c) => { c.d = (0, () => {}); });'],
    ['a.b = () => a.c = () => 1', 'a.b = (0, () => a.c = (0, () => 1))'],
    ['class A { #b; c() { this.#b = () => 1; } }', 'class A { #b; c() { this.#b = (0, () => 1); } }'],
    ['a.b = c.d = (function* () {})', 'a.b = c.d = ((0, function* () {}))'],
  ])('is written behind a comma: %s', (code, rewritten) => {
    expect(youngClosures(code)).toBe(rewritten);
  });

  it.each([
    'const a = () => 1;',
    'a = () => 1;',
    'f({ a: () => 1 });',
    'a.b = f(() => 1);',
    'a.b = class {};',
    'a.b = 1;',
  ])('leaves everything else as it is: %s', (code) => {
    expect(youngClosures(code)).toBe(code);
  });

  it('lets what the function refers to die young', async () => {
    // Without the optimizing compiler: it removes some allocations, and nobody knows when it starts.
    const grownBy = async (code: string) =>
      Number((await run(process.execPath, ['--expose-gc', '--no-opt', '-e', code])).stdout);
    expect(await grownBy(COMMANDS)).toBeGreaterThan(5);
    expect(await grownBy(youngClosures(COMMANDS))).toBeLessThan(1);
  });
});
