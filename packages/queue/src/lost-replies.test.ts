/** When Redis is asked for jobs whose reply was lost. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createLostReplies, type LostRepliesOptions } from './lost-replies.ts';
import { Partitions } from './partitions.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Has one token that may have locked jobs. Returns the seconds after which Redis was asked for it, in a minute. */
async function secondsOfCalls(answer: (second: number) => ReturnType<LostRepliesOptions['putBackLost']>) {
  const [partition] = new Partitions(1, 10).all;
  if (!partition) throw new Error('No partition');
  const seconds: number[] = [];
  const errors: unknown[] = [];
  const startedAtMs = Date.now();
  const lostReplies = createLostReplies({
    onDisconnect: () => undefined,
    putBackLost(index, tokens, knownIds) {
      expect([index, tokens, knownIds]).toEqual([0, ['token'], ['known']]);
      const second = (Date.now() - startedAtMs) / 1_000;
      seconds.push(second);
      return answer(second);
    },
    onPutBack: () => undefined,
    onError: (error) => errors.push(error),
    askLostMs: 1_000,
    lockMs: 30_000,
    knownIds: () => ['known'],
  });
  lostReplies.start();
  lostReplies.over(lostReplies.sent(partition, 'token'), true);
  lostReplies.over(lostReplies.sent(partition, 'certain'));
  await jest.advanceTimersByTimeAsync(60_000);
  lostReplies.stop();
  return { seconds, errors };
}

it('asks with growing pauses, for as long as a lock lasts', async () => {
  expect(await secondsOfCalls(async () => 0)).toEqual({ seconds: [1, 2, 4, 8, 16, 32], errors: [] });
});

it('asks again a second after an error', async () => {
  const error = new Error('away');
  const answer = (second: number) => (second < 7 ? Promise.reject(error) : Promise.resolve(0));
  expect(await secondsOfCalls(answer)).toEqual({
    seconds: [1, 2, 3, 4, 5, 6, 7, 8, 16, 32],
    errors: Array(6).fill(error),
  });
});

it('also repeats the last question after an error', async () => {
  const answer = (second: number) =>
    second >= 32 && second < 35 ? Promise.reject(new Error('away')) : Promise.resolve(0);
  expect((await secondsOfCalls(answer)).seconds).toEqual([1, 2, 4, 8, 16, 32, 33, 34, 35]);
});

it('does not count the time in which Redis does not reply', async () => {
  const answer = (second: number) =>
    second === 1 ? new Promise<number>((resolve) => setTimeout(resolve, 20_500, 0)) : Promise.resolve(0);
  expect((await secondsOfCalls(answer)).seconds).toEqual([1, 22, 24, 28, 36, 52]);
});
