import { expect, it } from '@jest/globals';
import { eachInTurn, PartitionUnavailable, StorageUnavailable } from '../index.ts';

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
