/** The heap of an app grows no further than it must, without flags on its command line: `packages/runtime/src/heap.ts`. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { eventually, HUNG_MS } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { ownEnv, ownProcess } from './own.ts';

const PROBE = pathToFileURL(join(root, 'tests/heap-probe.ts')).href;
/** Half of the young generation is limited to 8 MiB, and for moments it holds more; without a limit it gets 64. */
const MAX_YOUNG_MIB = 16;
/** About 70; without a limit 130. */
const MAX_OLD_MIB = 100;

/** How large the heap of an app got when much was allocated in it, in MiB. */
async function heapOf(app: 'ingest' | 'worker' | 'console', nodeOptions = '') {
  const process = ownProcess(app, ownEnv({ NODE_OPTIONS: `--import=${PROBE} ${nodeOptions}` }));
  await process.ready;
  process.child.kill('SIGUSR2');
  const said = () => process.output.find((line) => line.startsWith('{"msg":"heap"'));
  await eventually('the sizes of the heap', () => said() !== undefined, HUNG_MS);
  return JSON.parse(said() ?? '') as { young: number; old: number };
}

describe('an app that allocates much', () => {
  it.each(['ingest', 'worker', 'console'] as const)('collects garbage early: %s', async (app) => {
    const { young, old } = await heapOf(app);
    expect(young).toBeLessThan(MAX_YOUNG_MIB);
    expect(old).toBeLessThan(MAX_OLD_MIB);
  });
  it('obeys NODE_OPTIONS', async () => {
    expect((await heapOf('ingest', '--max-semi-space-size=32')).young).toBeGreaterThan(MAX_YOUNG_MIB);
  });
});
