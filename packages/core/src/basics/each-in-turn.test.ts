import { expect, it } from '@jest/globals';
import { eachInTurn, eachSideBySide, PartitionUnavailable, StorageUnavailable } from '../index.ts';

it.each([
  [new Error('wrong'), [1, 2, 3]],
  [new StorageUnavailable('away'), [1, 2]],
  [new PartitionUnavailable('away'), [1, 2, 3]],
])('after %s of the second of three items it has taken %j, and throws it', async (error, expected) => {
  const taken: number[] = [];
  const step = async (item: number) => {
    taken.push(item);
    if (item === 2) throw error;
  };
  await expect(eachInTurn([1, 2, 3], step)).rejects.toBe(error);
  expect(taken).toEqual(expected);
});

it('throws all errors', async () => {
  const errors = [new PartitionUnavailable('away'), new TypeError('a bug')];
  const step = (error: Error) => Promise.reject(error);
  await expect(eachInTurn(errors, step)).rejects.toMatchObject({ message: 'away', errors });
});

it.each([
  [new Error('wrong'), [1, 2, 3, 4, 5]],
  [new StorageUnavailable('away'), [1, 2]],
])('takes two at once, and after %s of the first has taken %j', async (error, expected) => {
  const taken: number[] = [];
  let [inFlight, most] = [0, 0];
  const step = async (item: number) => {
    taken.push(item);
    inFlight += 1;
    most = Math.max(most, inFlight);
    await Promise.resolve();
    inFlight -= 1;
    if (item === 1) throw error;
  };
  await expect(eachSideBySide([1, 2, 3, 4, 5], 2, step)).rejects.toBe(error);
  expect(taken).toEqual(expected);
  expect(most).toBe(2);
});
