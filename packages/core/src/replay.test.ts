/** The bulk replay's body, and how long a failed delivery can be replayed. */
import { expect, it } from '@jest/globals';
import { problemsOf } from '@posthorn/testing';
import { newReplaySchema, newSubscriptionId, REPLAY_STATUSES, replayableUntilMs } from './index.ts';

const subscription_id = newSubscriptionId();
const [earlier, later] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'];

it('statuses are those of the interface', () => {
  expect(REPLAY_STATUSES).toEqual(['running', 'done', 'failed']);
});

it.each([
  [{}, {}],
  [{ from: earlier }, { from: Date.parse(earlier) }],
  [{ to: earlier }, { to: Date.parse(earlier) }],
  [
    { from: earlier, to: later },
    { from: Date.parse(earlier), to: Date.parse(later) },
  ],
  [
    { from: earlier, to: earlier },
    { from: Date.parse(earlier), to: Date.parse(earlier) },
  ],
])('the time %j is read as %j', (time, ms) => {
  expect(newReplaySchema.parse({ subscription_id, ...time })).toEqual({ subscription_id, ...ms });
});

it.each([
  [{ from: later, to: earlier }, 'to: Expected an instant that is not before from'],
  [{ subscription_id: 'sub_1' }, 'subscription_id: Expected the id of a subscription'],
  [{ from: 'yesterday' }, 'from: Expected an ISO 8601 instant with a zone'],
  [{ status: 'failed' }, ': Unrecognized key: "status"'],
])('%j is refused: %s', (change, problem) => {
  expect(problemsOf(newReplaySchema, { subscription_id, ...change })).toContain(problem);
});

it('a delivery can be replayed for as long as the retention after it failed', () => {
  expect(replayableUntilMs(1_000, 30 * 86_400_000)).toBe(1_000 + 30 * 86_400_000);
});
