/** Which locks are renewed, and which lost ones are reported. */
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { ErrorCode } from 'bullmq';
import { isJobGone } from './endings.ts';
import { createJobLocks } from './job-locks.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

it('reports a lock that is lost, but not that of a job that ends or has ended', async () => {
  const problems: Error[] = [];
  const locks = createJobLocks({
    lockMs: 40_000,
    extend: async (_partition, ids) => {
      locks.remove(ended);
      return ids;
    },
    onError: (error) => void problems.push(error as Error),
  });
  locks.start();
  locks.add(0, 'lost', 'token');
  const ending = locks.add(0, 'ending', 'token');
  const ended = locks.add(0, 'ended', 'token');
  ending.isEnding = true;
  await jest.advanceTimersByTimeAsync(20_000);
  locks.stop();
  expect(problems).toMatchObject([{ message: 'could not renew lock for job lost', code: ErrorCode.JobLockNotExist }]);
  expect(problems.map(isJobGone)).toEqual([true]);
});

it('renews each lock once it is older than a quarter of its life, those of a partition together', async () => {
  const asked: unknown[] = [];
  const extend = async (...of: unknown[]) => {
    asked.push(of);
    return [];
  };
  const locks = createJobLocks({ lockMs: 40_000, extend, onError: (error) => asked.push(error) });
  locks.start();
  locks.add(0, 'a', 'token of a');
  locks.add(1, 'b', 'token of b');
  locks.add(0, 'c', 'token of c');
  await jest.advanceTimersByTimeAsync(15_000);
  locks.add(0, 'young', 'token');
  expect(asked).toEqual([]);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(asked).toEqual([
    [0, ['a', 'c'], ['token of a', 'token of c']],
    [1, ['b'], ['token of b']],
  ]);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(asked.slice(2)).toEqual([[0, ['young'], ['token']]]);
  locks.stop();
});

it('renews locks though the clock was set back', async () => {
  const asked: string[][] = [];
  const extend = async (_partition: number, ids: string[]) => {
    asked.push(ids);
    return [];
  };
  const locks = createJobLocks({ lockMs: 40_000, extend, onError: (error) => asked.push([String(error)]) });
  locks.start();
  locks.add(0, 'a', 'token');
  jest.setSystemTime(Date.now() - 3_600_000);
  await jest.advanceTimersByTimeAsync(20_000);
  locks.stop();
  expect(asked).toEqual([['a']]);
});
