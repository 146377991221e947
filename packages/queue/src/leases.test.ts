/** Which leases a process renews. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { Leases } from './leases.ts';

afterEach(() => void jest.useRealTimers());

it('renews the leases under which jobs may be taken, and not those under which perhaps none is', () => {
  const renewed: number[] = [];
  const errors: unknown[] = [];
  const leases = new Leases({
    partitions: 3,
    watch: async (partition, { owner }) => {
      if (owner) renewed.push(partition);
      return { state: 'renewed', putBack: 0, isMore: false };
    },
    findWatched: async () => new Set(),
    hasJobs: (partition) => partition === 2,
    renewMs: 3_600_000,
    onTakenOver: () => undefined,
    onError: (error) => errors.push(error),
  });
  leases.newToken(0);
  leases.newToken(1, true);
  leases.start();
  leases.stop();
  expect(renewed).toEqual([0, 2]);
  expect(errors).toEqual([]);
});

it('goes on at once where jobs of a dead worker are left, and says so', async () => {
  const calls: [string | undefined, boolean][] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const leases = new Leases({
    partitions: 1,
    watch: async (_partition, { owner, goesOn }) => {
      calls.push([owner && 'renewal', goesOn]);
      if (calls.length === 3) resolve();
      return { state: owner ? 'renewed' : undefined, putBack: 200, isMore: calls.length < 3 };
    },
    findWatched: async () => new Set(),
    hasJobs: () => true,
    renewMs: 3_600_000,
    onTakenOver: () => undefined,
    onError: (error) => {
      throw error;
    },
  });
  leases.start();
  await promise;
  leases.stop();
  expect(calls).toEqual([
    ['renewal', false],
    [undefined, true],
    [undefined, true],
  ]);
});

it('asks once where others have jobs while Redis does not reply, however long that lasts', () => {
  jest.useFakeTimers();
  const findWatched = jest.fn(() => new Promise<never>(() => undefined));
  const leases = new Leases({
    partitions: 1,
    watch: async () => ({ state: undefined, putBack: 0, isMore: false }),
    findWatched,
    hasJobs: () => false,
    renewMs: 1_000,
    onTakenOver: () => undefined,
    onError: () => undefined,
  });
  leases.start();
  jest.advanceTimersByTime(60_000);
  leases.stop();
  expect(findWatched).toHaveBeenCalledTimes(1);
});
