/** How events are stored: packed where every process can read that, and as before where not. */
import { describe, expect, it } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { encodeEvent, prefixOfEvent } from './events.ts';
import { connectRedis, findEvents, loadEvent, openStore, type Store, storeEvent } from './index.ts';
import { eventKey, installationKey } from './keys.ts';
import { event, store, time } from './test-deliveries.ts';

const dataJson =
  '{"id":"3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11","status":"approved","tier":2.50,"metadata":{"user_id":"\\u0001é"}}';

function someEvent() {
  const sent = event({ dataJson, createdAt: new Date(time.nowMs - 86_400_000).toISOString() });
  return { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: ['sub_a', 'sub_b'] };
}
const textOf = async (of: Store, { ref }: ReturnType<typeof someEvent>) =>
  (await of.redis.get(eventKey(prefixOfEvent(of, ref), ref))) ?? '';

describe('an event', () => {
  it('is stored packed and read as it was, also where its id is published again', async () => {
    const stored = someEvent();
    await storeEvent(store, stored);
    expect((await textOf(store, stored)).length).toBeLessThan(encodeEvent(stored).length - 60);
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await findEvents(store, stored.event.id)).toEqual([stored]);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
  it('that an earlier version has stored is read', async () => {
    const stored = someEvent();
    await store.redis.set(eventKey(prefixOfEvent(store, stored.ref), stored.ref), encodeEvent(stored));
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
});

describe('an installation', () => {
  const open = async (prefix: string) => {
    const opened = openStore(
      { REDIS_URL: testRedisUrl(), KEY_PREFIX: prefix, PARTITIONS: 1, RETENTION: 86_400_000 },
      { onError: () => undefined },
    );
    await opened.start();
    return opened;
  };
  it('that began with an earlier version stores events as that version does, until an operator allows more', async () => {
    const prefix = testPrefix();
    const redis = connectRedis({ REDIS_URL: testRedisUrl() });
    await redis.hset(installationKey(prefix), 'partitions', 1);
    const before = await open(prefix);
    const stored = someEvent();
    await storeEvent(before.store, stored);
    expect(await textOf(before.store, stored)).toBe(encodeEvent(stored));
    await redis.hset(installationKey(prefix), 'record_format', 2);
    const after = await open(prefix);
    const later = someEvent();
    await storeEvent(after.store, later);
    expect(await textOf(after.store, later)).toBe(encodeEvent(later, true));
    // Processes that have not been restarted read it too.
    expect(await loadEvent(before.store, later.ref)).toEqual(later);
    for (const opened of [before, after]) await opened.stop();
    for (const key of await redis.keys(`${prefix}:*`)) await redis.del(key);
    redis.disconnect();
  });
});
