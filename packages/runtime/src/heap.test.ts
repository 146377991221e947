/** How far the young generation grows. In processes of their own: V8's flags are those of a whole process. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { limitHeap } from './heap.ts';

const run = promisify(execFile);

/**
 * Makes 800 MB of objects, `KEPT` of which are in use at any time, 1 KB each. Prints how large a half of the young
 * generation usually is in the second part of the run, in MiB: V8 lets it grow for a moment while it marks the old one.
 */
const LOAD = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const { limitHeap } = await import(process.env.MODULE);
  if (process.env.LIMITED) limitHeap(JSON.parse(process.env.LIMITED));
  const inUse = new Array(Number(process.env.KEPT)).fill(null);
  const sizes = [];
  for (let turn = 0; turn < 4_000; turn++) {
    for (let i = 0; i < 200; i++) inUse[(turn * 200 + i) % inUse.length] = new Array(122).fill(i);
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    if (turn >= 2_000) sizes.push(young.space_used_size + young.space_available_size);
    await new Promise(setImmediate);
  }
  console.log(sizes.sort((a, b) => a - b)[sizes.length / 2] / 1024 / 1024);
`;

async function usualMib(kept: number, options: Parameters<typeof limitHeap>[0] | null = {}): Promise<number> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', LOAD], {
    env: {
      PATH: process.env.PATH,
      MODULE: new URL('heap.ts', import.meta.url).href,
      KEPT: String(kept),
      ...(options === null ? {} : { LIMITED: JSON.stringify(options) }),
    },
  });
  return Number(stdout);
}

describe('each half of the young generation', () => {
  it('stays small while what is made is soon over', async () => {
    expect(await usualMib(100)).toBeLessThan(4.5);
  });
  it('grows, up to a limit, where more is in use than it has room for', async () => {
    expect(await usualMib(5_000)).toBeCloseTo(8, 1);
    expect(await usualMib(5_000, null)).toBeGreaterThan(12);
  });
  it('stays as small as an app says', async () => {
    expect(await usualMib(5_000, { semiSpaceBytes: 2 ** 20, maxSemiSpaceBytes: 2 ** 20 })).toBeCloseTo(1, 1);
  });
});
