/** Live feeds: what is written while somebody listens, and what readers learn of what is missing. */
import { describe, expect, it } from '@jest/globals';
import { announceListeners, createFeedWriter, endOfFeed, FEED_START, readFeed } from './feeds.ts';
import { partitionPrefix, tailingKey, tailKey } from './keys.ts';
import { store } from './test-deliveries.ts';

const textsAfter = async (id: string) => (await readFeed(store, 'attempts', id, 1_000)).records.map(({ text }) => text);
const streamKey = () => tailKey(partitionPrefix(store, 0));

describe('a feed', () => {
  it('is looked at every 2 s until a listener is announced, then written every 250 ms until none is', async () => {
    const writer = createFeedWriter(store, 'attempts');
    await writer.write();
    expect(writer.isWatched()).toBe(false);
    expect(await store.redis.keys(`${store.prefix}:*`)).not.toContain(streamKey());
    await announceListeners(store, 'attempts');
    expect(writer.everyMs()).toBe(2_000);
    await writer.write();
    expect([writer.isWatched(), writer.everyMs()]).toEqual([true, 250]);
    await store.redis.del(tailingKey(partitionPrefix(store, 0)));
    for (let call = 1; call < 8; call++) await writer.write();
    expect(writer.isWatched()).toBe(true);
    await writer.write();
    expect(writer.isWatched()).toBe(false);
    expect(createFeedWriter(store, 'sandbox_events').isWatched()).toBe(false);
  });
  it('returns entries in order after any place, with a mark where the first listener came', async () => {
    await announceListeners(store, 'attempts');
    const start = await endOfFeed(store, 'attempts');
    const writer = createFeedWriter(store, 'attempts');
    for (const text of ['a', 'b', 'c']) writer.add(text, false);
    await writer.write();
    await announceListeners(store, 'attempts');
    expect(await textsAfter(FEED_START)).toEqual([undefined, 'a', 'b', 'c']);
    const [first, second] = (await readFeed(store, 'attempts', start, 2)).records;
    expect([first?.text, second?.text]).toEqual(['a', 'b']);
    expect(await textsAfter(second?.id ?? '')).toEqual(['c']);
    // Its listeners were away for longer than writers remember.
    await store.redis.del(tailingKey(partitionPrefix(store, 0)));
    await announceListeners(store, 'attempts');
    expect(await textsAfter(second?.id ?? '')).toEqual(['c', undefined]);
  });
  it('has at most 125 entries of a call, failed ones first, and says how many were left out', async () => {
    await announceListeners(store, 'attempts');
    const writer = createFeedWriter(store, 'attempts');
    for (let i = 0; i < 150; i++) writer.add('ok', false);
    for (let i = 0; i < 40; i++) writer.add('failed', true);
    await writer.write();
    const { records } = await readFeed(store, 'attempts', await firstId(), 1_000);
    expect(records.filter(({ text }) => text === 'ok')).toHaveLength(100);
    expect(records.filter(({ text }) => text === 'failed')).toHaveLength(25);
    expect(records.map(({ dropped }) => dropped)).toEqual([65, ...Array(124).fill(0)]);
    await writer.write();
    expect(await textsAfter(records.at(-1)?.id ?? '')).toEqual([]);
  });
  it('says with the next entry, however late, how many could not be written', async () => {
    await announceListeners(store, 'attempts');
    const writer = createFeedWriter(store, 'attempts');
    await writer.write();
    await store.redis.set(streamKey(), 'of another type');
    for (const text of ['a', 'b']) writer.add(text, false);
    await expect(writer.write()).rejects.toThrow('WRONGTYPE');
    await store.redis.del(streamKey());
    await writer.write();
    writer.add('c', false);
    await writer.write();
    expect((await readFeed(store, 'attempts', FEED_START, 10)).records).toMatchObject([{ text: 'c', dropped: 2 }]);
  });
  it('says how many were left out also of the last ones before nobody listens any more', async () => {
    await announceListeners(store, 'attempts');
    const writer = createFeedWriter(store, 'attempts');
    for (let call = 0; call < 8; call++) await writer.write();
    await store.redis.del(tailingKey(partitionPrefix(store, 0)));
    const start = await firstId();
    for (let i = 0; i < 130; i++) writer.add('failed', true);
    await writer.write();
    expect(writer.isWatched()).toBe(false);
    expect((await readFeed(store, 'attempts', start, 1)).records).toMatchObject([{ text: 'failed', dropped: 5 }]);
  });
  it('says that entries may be missing where a place is gone, and when all are', async () => {
    await announceListeners(store, 'attempts');
    const writer = createFeedWriter(store, 'attempts');
    for (const text of ['a', 'b', 'c']) writer.add(text, false);
    await writer.write();
    const start = await firstId();
    expect(await readFeed(store, 'attempts', start, 10)).toMatchObject({ hasGap: false, isLost: false });
    await store.redis.xtrim(streamKey(), 'MAXLEN', 2);
    expect(await readFeed(store, 'attempts', start, 10)).toMatchObject({ hasGap: true, isLost: false });
    await store.redis.del(streamKey());
    expect(await readFeed(store, 'attempts', start, 10)).toMatchObject({ hasGap: true, isLost: true });
    expect(await endOfFeed(store, 'attempts')).toBe(FEED_START);
    expect(await readFeed(store, 'attempts', FEED_START, 10)).toEqual({ records: [], hasGap: false, isLost: false });
  });
  it('keeps about 10,000 attempts and 1,000 events, and ends a minute after its last listener', async () => {
    await announceListeners(store, 'attempts');
    await announceListeners(store, 'sandbox_events');
    for (const [feed, limit] of [
      ['attempts', 10_000],
      ['sandbox_events', 1_000],
    ] as const) {
      const writer = createFeedWriter(store, feed);
      for (let call = 0; call < limit / 125 + 8; call++) {
        for (let i = 0; i < 125; i++) writer.add('x', true);
        await writer.write();
      }
      const { records } = await readFeed(store, feed, FEED_START, 100_000);
      expect(records.length).toBeGreaterThanOrEqual(limit);
      expect(records.length).toBeLessThan(limit + 200);
    }
    for (const key of await store.redis.keys(`${partitionPrefix(store, 0)}:*`)) {
      if (!/:(tail|tailing|published|listening)$/.test(key)) continue;
      const limitMs = /ing$/.test(key) ? 10_000 : 60_000;
      const leftMs = await store.redis.pttl(key);
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(limitMs);
    }
  });
});

const firstId = async () => (await readFeed(store, 'attempts', FEED_START, 1)).records[0]?.id ?? '';
