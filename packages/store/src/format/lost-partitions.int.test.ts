/** How a process notices that partitions have lost their data. */
import { expect, it } from '@jest/globals';
import { allPrefixes, begunKey } from '../keys.ts';
import { store } from '../test-deliveries.ts';
import { createLostPartitions } from './lost-partitions.ts';

it('finds a partition without the mark that it had, until that is back', async () => {
  const { find: lost } = createLostPartitions(store);
  expect(await lost()).toEqual([]);
  const key = begunKey(allPrefixes(store)[1]!);
  const mark = await store.redis.get(key);
  await store.redis.del(key);
  expect([await lost(), await lost()]).toEqual([[1], [1]]);
  // A process that has just started takes what it finds.
  expect(await createLostPartitions(store).find()).toEqual([]);
  expect(await lost()).toEqual([1]);
  await store.redis.set(key, mark!);
  expect(await lost()).toEqual([]);
});

it('agrees on the marks with processes that start at the same time', async () => {
  const several = Array.from({ length: 5 }, () => createLostPartitions(store));
  await Promise.all(several.map(({ find }) => find()));
  expect(await Promise.all(several.map(({ find }) => find()))).toEqual(several.map(() => []));
});

it('looks at a partition after a doubt until it has found its mark', async () => {
  const lost = createLostPartitions(store);
  expect(await lost.find()).toEqual([]);
  const prefix = allPrefixes(store)[1]!;
  expect(lost.isLost(prefix)).toBeUndefined();
  lost.doubt();
  const mark = await store.redis.getdel(begunKey(prefix));
  expect([await lost.isLost(prefix), await lost.isLost(prefix)]).toEqual([true, true]);
  await store.redis.set(begunKey(prefix), mark!);
  expect(await lost.isLost(prefix)).toBe(false);
  expect(lost.isLost(prefix)).toBeUndefined();
  lost.doubt();
  expect(await lost.find()).toEqual([]);
  expect(lost.isLost(prefix)).toBeUndefined();
});
