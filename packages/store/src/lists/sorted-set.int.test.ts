/** Reads of sorted sets that pass over ids of others. */
import { expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { store } from '../test-deliveries.ts';
import { newestFirst } from './page.ts';
import { type Scan, scanSortedSet } from './sorted-set.ts';

it.each(['newest_first', 'oldest_first'] as const)(
  'reads on from the time of the last entry, since Redis walks to an offset: %s',
  async (order) => {
    const key = `${store.prefix}:{0}:some`;
    const pipeline = store.redis.pipeline();
    const all: { ms: number; id: string }[] = [];
    const add = (count: number, msOf: (i: number) => number) => {
      for (let i = 0; i < count; i++) {
        const id = `${all.length % 100 === 0 ? 'mine' : 'other'}-${String(all.length).padStart(5, '0')}`;
        all.push({ ms: msOf(i), id });
        pipeline.zadd(key, msOf(i), id);
      }
    };
    add(7_000, (i) => 1 + i);
    // More in one millisecond than one command reads.
    add(4_500, () => 8_000);
    add(6_500, (i) => 9_000 + Math.floor(i / 3));
    await pipeline.exec();
    const read = jest.spyOn(store.redis, order === 'newest_first' ? 'zrevrangebyscore' : 'zrangebyscore');
    const scan = (change: Partial<Scan>) =>
      scanSortedSet(store, key, { order, after: undefined, count: 1_000, idPrefix: 'mine', ...change });

    const mine = all.filter(({ id }) => id.startsWith('mine'));
    const wanted = order === 'newest_first' ? mine.toReversed() : mine;
    expect(await scan({})).toEqual(wanted);
    expect(await scan({ after: wanted[90] })).toEqual(wanted.slice(91));
    expect(await scan({ fromMs: 7_000, toMs: 8_000, count: 20 })).toEqual(
      wanted.filter(({ ms }) => ms >= 7_000 && ms <= 8_000).slice(0, 20),
    );
    const offsets = read.mock.calls.map((call: readonly unknown[]) => Number(call[5]));
    expect(Math.max(...offsets)).toBeLessThanOrEqual(4_500);
    expect(offsets.length).toBeGreaterThan(9);
  },
);

it('reads what a list in memory has: after any entry, within any times, however many share one', async () => {
  const ms = fc.integer({ min: 1, max: 4 });
  const entry = fc.record({ ms, id: fc.constantFrom(...'abcdefghijkl') });
  const anyScan = fc.record({
    order: fc.constantFrom('newest_first' as const, 'oldest_first' as const),
    after: fc.option(entry, { nil: undefined }),
    count: fc.integer({ min: 1, max: 5 }),
    fromMs: fc.option(ms, { nil: undefined }),
    toMs: fc.option(ms, { nil: undefined }),
  });
  const property = fc.asyncProperty(
    fc.uniqueArray(entry, { selector: ({ id }) => id }),
    anyScan,
    async (entries, scan) => {
      const key = `${store.prefix}:{0}:any`;
      await store.redis.del(key);
      for (const { ms, id } of entries) await store.redis.zadd(key, ms, id);
      const inOrder = (x: { ms: number; id: string }, y: { ms: number; id: string }) =>
        scan.order === 'newest_first' ? newestFirst(x, y) : newestFirst(y, x);
      const { after, fromMs = 0, toMs = 9, count } = scan;
      const wanted = entries
        .filter((one) => one.ms >= fromMs && one.ms <= toMs && (after === undefined || inOrder(after, one) < 0))
        .sort(inOrder)
        .slice(0, count);
      expect(await scanSortedSet(store, key, scan)).toEqual(wanted);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});
