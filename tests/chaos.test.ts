/** A short chaos run; `npm run chaos` is the long one. */
import { expect, it } from '@jest/globals';
import { runChaos } from './chaos/run.ts';

it('loses nothing accepted, sends nothing too early or too often and leaves nothing behind, whatever dies', async () => {
  const { figures, faults } = await runChaos({
    seed: 20_260,
    breakMs: 10_000,
    eventsPerS: 20,
    suspend: false,
    erase: false,
    eager: true,
    leastEvents: 150,
    say: () => undefined,
  });
  expect(faults).toEqual([]);
  expect(figures.lost).toBe(0);
  // It did break things, and there were events to lose.
  expect(Number(figures['deliveries owed'])).toBeGreaterThan(500);
  expect(figures['restart Redis']).toBeGreaterThan(0);
  expect(figures['kill a worker']).toBeGreaterThan(0);
}, 600_000);

it('a backup that is restored under load repeats what was delivered since, and loses nothing', async () => {
  const { figures, faults } = await runChaos({
    seed: 20_261,
    breakMs: 12_000,
    eventsPerS: 20,
    suspend: false,
    erase: false,
    eager: true,
    leastEvents: 150,
    restore: true,
    say: () => undefined,
  });
  expect(faults).toEqual([]);
  expect(figures.lost).toBe(0);
  // The backup was older than what it replaced, and more was broken on what it restored.
  expect(figures['of them unknown to the backup']).toBeGreaterThan(0);
  expect(figures['delivered again after the restore']).toBeGreaterThan(0);
  expect(figures['restart Redis']).toBeGreaterThan(1);
}, 600_000);
