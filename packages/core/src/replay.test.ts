/** The statuses of a bulk replay, and how long a failed delivery can be replayed. */
import { expect, it } from '@jest/globals';
import { DAY_MS } from './basics/time.ts';
import { REPLAY_STATUSES, replayableUntilMs } from './index.ts';

it('statuses are those of the interface', () => {
  expect(REPLAY_STATUSES).toEqual(['running', 'done', 'failed', 'canary', 'halted', 'cancelled']);
});

it('a delivery can be replayed for as long as the retention after it failed', () => {
  expect(replayableUntilMs(1_000, 30 * DAY_MS)).toBe(1_000 + 30 * DAY_MS);
});
