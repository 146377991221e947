/** The statuses of a bulk replay, and how long a failed delivery can be replayed. */
import { expect, it } from '@jest/globals';
import { DAY_MS } from './basics/time.ts';
import { type Attempt, type Delivery, judgeCanary, REPLAY_STATUSES, replayableUntilMs } from './index.ts';

it('statuses are those of the interface', () => {
  expect(REPLAY_STATUSES).toEqual(['running', 'done', 'failed', 'canary', 'halted', 'cancelled']);
});

it('a delivery can be replayed for as long as the retention after it failed', () => {
  expect(replayableUntilMs(1_000, 30 * DAY_MS)).toBe(1_000 + 30 * DAY_MS);
});

const failedAttempt: Attempt = { number: 1, startedAtMs: 0, durationMs: 1, statusCode: 500, error: 'status' };
type Judged = Pick<Delivery, 'status' | 'attempts'>;
const succeeded: Judged = { status: 'succeeded', attempts: [{ ...failedAttempt, statusCode: 200, error: null }] };
const retrying: Judged = { status: 'waiting_for_retry', attempts: [failedAttempt] };
const waiting: Judged = { status: 'pending', attempts: [] };
const erased: Judged = { status: 'failed', attempts: [] };

it.each([
  ['passed', [succeeded, succeeded]],
  ['passed', [succeeded, erased]],
  [undefined, [succeeded, waiting]],
  [undefined, [erased, waiting]],
  ['failed', [succeeded, waiting, retrying]],
  ['failed', [erased, erased]],
])('a canary is %s after %j', (verdict, deliveries) => {
  expect(judgeCanary(deliveries)).toBe(verdict);
});
