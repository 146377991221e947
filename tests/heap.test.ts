/**
 * The heap of an app grows no further than it must, without flags on its command line: `packages/runtime/src/heap.ts`.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { eventually, HUNG_MS } from '@posthorn/testing';
import { root } from '../scripts/folder.ts';
import { ownEnv, ownProcess } from './own.ts';

const PROBE = pathToFileURL(join(root, 'tests/heap-probe.ts')).href;
/**
 * How large the generations get under load is decided by V8 from collection to collection;
 * `npm run bench -- --only=processes` shows it.
 */
const OLD = '--heap-growing-percent=100';
const YOUNG = '--semi-space-growth-factor=1';

/** The flags of V8 that an app has set itself, and the size of a half of its young generation, after some requests. */
async function heapOf(app: 'ingest' | 'worker' | 'console', { nodeOptions = '', requests = 0 } = {}) {
  const process = ownProcess(app, ownEnv({ NODE_OPTIONS: `--import=${PROBE} ${nodeOptions}` }));
  const { url } = await process.ready;
  for (let i = 0; i < requests; i++) await (await fetch(`${url}/metrics`)).text();
  process.child.kill('SIGUSR2');
  const said = () => process.output.find((line) => line.startsWith('{"msg":"flags"'));
  await eventually('the flags', () => said() !== undefined, HUNG_MS);
  return JSON.parse(said() ?? '') as { flags: string[]; semiSpaceBytes: number };
}

describe('an app', () => {
  it.each(['ingest', 'worker', 'console'] as const)(
    'limits how far its heap grows, before it loads anything: %s',
    async (app) => {
      expect((await heapOf(app)).flags.slice(0, 2)).toEqual([OLD, YOUNG]);
    },
  );
  it('does not override NODE_OPTIONS', async () => {
    expect((await heapOf('ingest', { nodeOptions: '--max-semi-space-size=32' })).flags).toEqual([OLD]);
  });
  it('keeps the young generation of a console at its smallest', async () => {
    expect((await heapOf('console', { requests: 300 })).semiSpaceBytes).toBeLessThan(1.1 * 2 ** 20);
  });
});
