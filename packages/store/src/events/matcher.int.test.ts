/** What an event is matched to while subscriptions change, on a real Redis. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { eventRef, partitionOf } from '@posthorn/core';
import {
  changeSubscription,
  createMatcher,
  deleteSubscription,
  type Match,
  type Matcher,
  partitionPrefix,
  storeEvent,
} from '../index.ts';
import { allPrefixes, prefixOfSubscription, topicKey, topicsVersionKey } from '../keys.ts';
import { event, store, subscribe, time } from '../test-deliveries.ts';
import { sendTwice } from '../test-send-twice.ts';

let clockMs: number;
let matcher: Matcher;
beforeEach(() => {
  clockMs = 0;
  matcher = createMatcher(store, () => clockMs);
});
const match = (outdated?: Match) => matcher.match({ type: 'session.created', environment: 'sandbox' }, outdated);

/** Stores a new event in each partition as matched. Returns for each whether it was refused as outdated. */
async function areOutdated(of: Match): Promise<boolean[]> {
  const found = [];
  for (let partition = 0; partition < store.partitions; partition++) {
    let sent = event();
    for (let i = 0; partitionOf(sent.id, store.partitions) !== partition; i++) sent = event({ id: `${sent.id}.${i}` });
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: of.subscriptionIds };
    found.push((await storeEvent(store, stored, { match: of })) === 'outdated');
  }
  return found;
}
const all = (isOutdated: boolean) => Array.from({ length: store.partitions }, () => isOutdated);

describe('a match', () => {
  it('holds until a subscription changes what it listens on; then each partition refuses it', async () => {
    const first = await subscribe();
    const before = await match();
    expect(await areOutdated(before)).toEqual(all(false));
    await changeSubscription(store, first.id, (now) => ({ ...now, description: 'new' }));
    expect(await areOutdated(before)).toEqual(all(false));

    const second = await subscribe();
    expect(await areOutdated(before)).toEqual(all(true));
    const between = await match(before);
    expect([...between.subscriptionIds].sort()).toEqual([first.id, second.id].sort());
    expect(await areOutdated(between)).toEqual(all(false));

    await deleteSubscription(store, first.id, time.nowMs, { operator: 'anna' });
    expect(await areOutdated(between)).toEqual(all(true));
    expect((await match(between)).subscriptionIds).toEqual([second.id]);
  });
  it('is looked at once a second, and read again after a change that only its own partition knows of', async () => {
    const { id } = await subscribe();
    const first = await match();
    clockMs = 1_000;
    expect(await match()).toBe(first);
    // As a process that died before it told the other partitions.
    const prefix = prefixOfSubscription(store, id);
    await store.redis.srem(topicKey(prefix, 'sandbox:all'), id);
    await store.redis.set(topicsVersionKey(prefix), 1);
    clockMs = 1_999;
    expect(await match()).toBe(first);
    clockMs = 2_000;
    expect((await match()).subscriptionIds).toEqual([]);
  });
  it('is outdated by a change after one that a failover has lost', async () => {
    const { id } = await subscribe();
    const prefix = prefixOfSubscription(store, id);
    const known = await match();
    // What the new master has: nothing of that change.
    await store.redis.srem(topicKey(prefix, 'sandbox:all'), id);
    await store.redis.del(...allPrefixes(store).map(topicsVersionKey));
    const second = await subscribe();
    expect(await areOutdated(known)).toEqual(all(true));
    expect((await match(known)).subscriptionIds).toEqual([second.id]);
  });
  it('is doubted where a version is gone, since the subscriptions may be gone too', async () => {
    const doubt = jest.fn();
    matcher = createMatcher({ ...store, format: { ...store.format, doubt } }, () => clockMs);
    const { id } = await subscribe();
    await match();
    clockMs = 1_000;
    await match();
    expect(doubt).not.toHaveBeenCalled();
    await store.redis.del(topicsVersionKey(prefixOfSubscription(store, id)));
    clockMs = 2_000;
    await match();
    clockMs = 3_000;
    await match();
    expect(doubt).toHaveBeenCalledTimes(1);
  });
  it('is outdated by a change though an earlier one is announced again after it', async () => {
    const incrby = jest.spyOn(store.redis, 'incrby');
    await subscribe();
    const announced = [...incrby.mock.calls];
    incrby.mockRestore();
    const known = await match();
    await subscribe();
    // As ioredis sends a command again whose reply was lost.
    for (const [versionKey, step] of announced) await store.redis.incrby(versionKey, step);
    expect(announced).toHaveLength(store.partitions - 1);
    expect(await areOutdated(known)).toEqual(all(true));
  });
  it('is outdated by a change whose script was sent again, since its reply was lost', async () => {
    let { id } = await subscribe();
    // The first partition would know of it.
    while (partitionOf(id, store.partitions) === 0) ({ id } = await subscribe());
    const known = await match();
    sendTwice(store, 'saveSubscription');
    await changeSubscription(store, id, (now) => ({ ...now, environment: 'production' }));
    expect(await areOutdated(known)).toEqual(all(true));
  });
  it('is read once for events that arrive together', async () => {
    const [one, other] = await Promise.all([match(), match()]);
    expect(other).toBe(one);
  });
  it('is not kept if it is long', async () => {
    const key = topicKey(partitionPrefix(store, 0), 'sandbox:all');
    await store.redis.sadd(key, ...Array.from({ length: 1_000 }, (_, i) => `sub_${i}`));
    expect(await match()).toBe(await match());
    clockMs = 1_000;
    await store.redis.sadd(key, 'sub_1000');
    await store.redis.set(topicsVersionKey(partitionPrefix(store, 0)), 1);
    const long = await match();
    expect(long.subscriptionIds).toHaveLength(1_001);
    expect(await match()).not.toBe(long);
  });
});
