/**
 * Random stories of workers, crashes, operators and long times: every step follows the rules, and all deliveries
 * finish.
 */
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Store } from '@posthorn/store';
import fc from 'fast-check';
import { openTestStore } from '../packages/store/src/test-store.ts';
import { commands } from './model/commands.ts';
import { System } from './model/system.ts';

const RUNS = Number(process.env.MODEL_RUNS ?? 60);
const SEED = Number(process.env.MODEL_SEED ?? 1);
/**
 * A story takes a third of a second, and some seconds on a busy machine. A failed one is shrunk, which takes minutes.
 */
jest.setTimeout(600_000 + RUNS * 10_000);

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore(2));
});
afterAll(() => close());

let stories = 0;
let pauses = 0;
it(`${RUNS} random stories follow the rules (seed ${SEED})`, async () => {
  const story = fc.asyncProperty(fc.commands(commands, { maxCommands: 100, size: 'max' }), async (told) => {
    const system = new System({ ...store, prefix: `${store.prefix}:${stories++}` });
    // BullMQ reads the time itself.
    const clock = jest.spyOn(Date, 'now').mockImplementation(system.clock.now);
    try {
      await system.start();
      await fc.asyncModelRun(() => ({ model: system, real: system }), told);
      await system.comeToRest();
      pauses += system.model.pauses;
    } finally {
      clock.mockRestore();
      await system.stop();
    }
  });
  await fc.assert(story, { numRuns: RUNS, seed: SEED, endOnFailure: false });
  expect(stories).toBeGreaterThanOrEqual(RUNS);
  // Each seed has some, unless it is given a few stories only.
  if (RUNS >= 60) expect(pauses).toBeGreaterThan(0);
});
