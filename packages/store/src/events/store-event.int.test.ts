/** Which deliveries an event gets, and what a repeated or interrupted fan-out leaves. */
import { describe, expect, it } from '@jest/globals';
import { deliveryId, type Event, eventRef, HOUR_MS, partitionOf } from '@posthorn/core';
import { HUNG_MS } from '@posthorn/testing';
import type { Redis } from 'ioredis';
import {
  changeSubscription,
  confirmFanOut,
  createDeliveries,
  deleteSubscription,
  findMatches,
  laneLength,
  loadEvent,
  saveSubscription,
  storeEvent,
} from '../index.ts';
import { byStatusKey, bySubscriptionKey, prefixOfSubscription } from '../keys.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import {
  attempt,
  deliver,
  event,
  interrupted,
  loadOne,
  store,
  subscribe,
  subscriptionIdIn,
  time,
} from '../test-deliveries.ts';

/** Returns how many scripts, at most, had no reply yet at the same time from now on. */
function countScriptsInFlight(): () => number {
  let [inFlight, most] = [0, 0];
  const redis = store.redis as Redis;
  const { sendCommand } = redis;
  redis.sendCommand = (command, ...more) => {
    if (command.name.startsWith('eval')) {
      most = Math.max(most, ++inFlight);
      const ended = () => {
        inFlight -= 1;
      };
      command.promise.then(ended, ended);
    }
    return sendCommand.call(redis, command, ...more);
  };
  return () => most;
}

describe('matching', () => {
  it('sees a subscription from the write on, as it is then', async () => {
    const both = await subscribe();
    const created = await subscribe({ eventTypes: ['session.created'], environment: 'sandbox' });
    await subscribe({ eventTypes: ['session.declined'] });
    await subscribe({ environment: 'production' });
    await subscribe({ takesEvents: false, status: 'awaiting_validation' });
    const match = (type: Event['type'] = 'session.created') => findMatches(store, { type, environment: 'sandbox' });
    expect((await match()).sort()).toEqual([both.id, created.id].sort());
    await changeSubscription(store, created.id, (now) => ({ ...now, eventTypes: ['session.expired'] }));
    expect(await match()).toEqual([both.id]);
    expect((await match('session.expired')).sort()).toEqual([both.id, created.id].sort());
    await deleteSubscription(store, both.id, time.nowMs, { operator: 'anna' });
    expect(await match()).toEqual([]);
  });
  it('refuses to save an outdated state', async () => {
    const subscription = await subscribe();
    expect(await saveSubscription(store, { ...subscription, description: 'a' })).toBe(true);
    expect(await saveSubscription(store, { ...subscription, description: 'b' })).toBe(false);
  });
});

describe('fan-out', () => {
  it('makes and changes nothing when it is repeated', async () => {
    const subscription = await subscribe();
    const sent = event();
    const [first] = await deliver([subscription.id], sent);
    expect(first?.state).toBe('pending');
    const again = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: [subscription.id] };
    expect((await createDeliveries(store, again))[0]).toEqual(first);
    await attempt(first!.deliveryId, 1, { kind: 'succeeded' });
    expect((await createDeliveries(store, again))[0]?.state).toBe('without_first_job');
    expect((await loadOne(first!.deliveryId)).status).toBe('succeeded');
  });
  it('keeps the first content of an event and the subscriptions that it matched first', async () => {
    const subscription = await subscribe();
    const sent = event({ dataJson: '{"id":"s","text":"a\\nb"}' });
    const stored = {
      ref: eventRef(sent),
      event: sent,
      acceptedAtMs: time.nowMs,
      subscriptionIds: [subscription.id],
    };
    expect(await storeEvent(store, stored)).toEqual({ created: [] });
    expect(await storeEvent(store, { ...stored, subscriptionIds: [] })).toEqual({ kept: stored });
    expect(await loadEvent(store, stored.ref)).toEqual(stored);
  });
  it('is complete as far as it came where something is wrong with an address', async () => {
    const [good, broken] = [await subscribe(), await subscribe()];
    await store.redis.set(bySubscriptionKey(prefixOfSubscription(store, broken.id), broken.id), 'no stream');
    const sent = event();
    const stored = {
      ref: eventRef(sent),
      event: sent,
      acceptedAtMs: time.nowMs,
      subscriptionIds: [good.id, broken.id],
    };
    await storeEvent(store, stored);
    await expect(createDeliveries(store, stored)).rejects.toThrow(/^WRONGTYPE /);
    for (const { id } of [good, broken]) {
      const prefix = prefixOfSubscription(store, id);
      expect(await store.redis.zscore(byStatusKey(prefix, 'pending'), deliveryId(stored.ref, id))).not.toBeNull();
    }
  });
  it('is made for the other addresses where something is wrong with one, on one Redis one script after the other', async () => {
    const subscriptions = await Promise.all([0, 1, 2, 3].map((n) => subscribe({ id: subscriptionIdIn(n) })));
    const broken = subscriptions[0]!;
    await store.redis.set(bySubscriptionKey(prefixOfSubscription(store, broken.id), broken.id), 'no stream');
    const sent = event();
    const subscriptionIds = subscriptions.map(({ id }) => id);
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds };
    await storeEvent(store, stored);
    const mostInFlight = countScriptsInFlight();
    await expect(createDeliveries(store, stored)).rejects.toThrow(/^WRONGTYPE /);
    expect(mostInFlight()).toBe(1);
    for (const id of subscriptionIds) {
      const prefix = prefixOfSubscription(store, id);
      expect(await store.redis.zscore(byStatusKey(prefix, 'pending'), deliveryId(stored.ref, id))).not.toBeNull();
    }
    // In a Cluster, each partition may be on another Redis.
    await createDeliveries({ ...store, spansPartitions: false }, stored);
    expect(mostInFlight()).toBe(4);
  });
  it('lists what it has made in every partition but one whose index is broken', async () => {
    const subscriptions = await Promise.all(Array.from({ length: 20 }, () => subscribe()));
    const brokenKey = byStatusKey(prefixOfSubscription(store, subscriptions[0]!.id), 'pending');
    const backup = `${brokenKey}:backup`;
    await store.redis.rename(brokenKey, backup).catch(() => undefined);
    await store.redis.set(brokenKey, 'no sorted set');
    const sent = event();
    const subscriptionIds = subscriptions.map(({ id }) => id);
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds };
    await expect(storeEvent(store, stored, { withDeliveries: true })).rejects.toThrow(/^WRONGTYPE /);
    await store.redis.del(brokenKey);
    await store.redis.rename(backup, brokenKey).catch(() => undefined);
    for (const id of subscriptionIds) {
      const key = byStatusKey(prefixOfSubscription(store, id), 'pending');
      if (key === brokenKey) continue;
      expect(await store.redis.zscore(key, deliveryId(stored.ref, id))).not.toBeNull();
    }
  });
  it('is listed as interrupted until it is confirmed', async () => {
    const subscription = await subscribe();
    const sent = event();
    await deliver([subscription.id], sent);
    expect(await interrupted(time.nowMs - 1)).toEqual([]);
    expect(await interrupted(time.nowMs)).toEqual([eventRef(sent)]);
    await confirmFanOut(store, eventRef(sent));
    expect(await interrupted(time.nowMs)).toEqual([]);
  });
  it('is one step on one Redis, over all partitions', async () => {
    const subscriptions = await Promise.all(Array.from({ length: 20 }, () => subscribe()));
    const subscriptionIds = subscriptions.map(({ id }) => id);
    expect(new Set(subscriptionIds.map((id) => partitionOf(id, store.partitions))).size).toBeGreaterThan(1);
    const sent = event();
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds };
    const result = await storeEvent(store, stored, { withDeliveries: true });
    expect('created' in result && result.created.map(({ subscriptionId }) => subscriptionId)).toEqual(subscriptionIds);
    expect(await interrupted(time.nowMs)).toEqual([]);
    // A repeat, as a publisher's, finds nothing to do.
    expect((await createDeliveries(store, stored)).map(({ state }) => state)).toEqual(Array(20).fill('pending'));
    // Each is where its id says.
    const made = 'created' in result ? result.created : [];
    for (const { deliveryId, subscriptionId } of made) {
      expect(await loadOne(deliveryId)).toMatchObject({ status: 'pending', subscriptionId });
    }
  });
  it('trims and prolongs the stream of an address once an hour, and when the retention has changed', async () => {
    const { id } = await subscribe();
    const stream = bySubscriptionKey(prefixOfSubscription(store, id), id);
    const { lifeMs, oldestMs } = streamLimits(store, time.nowMs);
    /**
     * Makes deliveries while the stream, with old entries, has so long to live. Returns whether the stream was looked
     * after.
     */
    const isLookedAfter = async (leftMs: number) => {
      await store.redis.del(stream);
      const adding = store.redis.pipeline();
      for (let i = 0; i < 1_000; i++) adding.xadd(stream, `${oldestMs - 2_000 + i}-0`, 'd', 'old');
      await adding.pexpire(stream, leftMs).exec();
      // The second one finds nothing to trim.
      for (let i = 0; i < 2; i++) await deliver([id]);
      const isTrimmed = (await store.redis.xlen(stream)) < 500;
      const isProlonged = (await store.redis.pttl(stream)) > leftMs;
      const isShortened = (await store.redis.pttl(stream)) < leftMs - HOUR_MS;
      expect(isTrimmed).toBe(isProlonged || isShortened);
      return isTrimmed;
    };
    await deliver([id]);
    expect(await store.redis.pttl(stream)).toBeGreaterThan(lifeMs + HOUR_MS - HUNG_MS);
    expect(await isLookedAfter(lifeMs + HOUR_MS - 1)).toBe(false);
    expect(await isLookedAfter(lifeMs + HUNG_MS)).toBe(false);
    expect(await isLookedAfter(lifeMs - 1)).toBe(true);
    expect(await isLookedAfter(2 * lifeMs)).toBe(true);
  });
  it('trims all that is too old of the stream of an address, with several deliveries if there is much', async () => {
    const { id } = await subscribe();
    const stream = bySubscriptionKey(prefixOfSubscription(store, id), id);
    const { lifeMs, oldestMs } = streamLimits(store, time.nowMs);
    const adding = store.redis.pipeline();
    for (let i = 0; i < 25_000; i++) adding.xadd(stream, `${oldestMs - 25_000 + i}-0`, 'd', 'old');
    await adding.pexpire(stream, lifeMs - HUNG_MS).exec();
    for (let i = 0; i < 4; i++) await deliver([id]);
    // Redis trims whole nodes, each of up to 100 entries.
    expect(await store.redis.xlen(stream)).toBeLessThan(4 + 100);
    expect(await store.redis.pttl(stream)).toBeGreaterThan(lifeMs);
  });
  it('holds the delivery to a paused address from the start, and makes none to a deleted one', async () => {
    const paused = await subscribe({ status: 'paused' });
    const deleted = await subscribe();
    await deleteSubscription(store, deleted.id, time.nowMs, { operator: 'anna' });
    const made = await deliver([paused.id, deleted.id]);
    expect(made.map(({ state }) => state).sort()).toEqual(['held', 'none']);
    expect(await laneLength(store, 'held', paused.id)).toBe(1);
  });
});

describe('a repeat of a large event', () => {
  const data = (extra: string) => `{"id":"s","status":"x","long":"${'é'.repeat(9_000)}"${extra}}`;
  const send = async (dataJson: string) => {
    const sent = event({ id: 'large', dataJson });
    const { id } = await subscribe();
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: [id] };
    return await storeEvent(store, stored, { withDeliveries: true });
  };
  it('gets its data for a comparison only if they have the same length, else what is before them', async () => {
    await send(data(',"a":1'));
    for (const [repeated, kept] of [
      [data(',"b":2'), data(',"a":1')],
      [data(',"a":10'), ''],
      ['{"id":"s","status":"x"}', ''],
    ] as const) {
      const result = await send(repeated);
      expect(result).toMatchObject({ kept: { event: { id: 'large', dataJson: kept }, acceptedAtMs: time.nowMs } });
    }
  });
  it.each([
    ['large', data(''), ''],
    // Packed, so what is before the data can't be read without them.
    ['small', '{"id":"s","status":"y"}', '{"id":"s","status":"y"}'],
  ])('finds the data of a %s one behind any number of subscriptions', async (_size, dataJson, kept) => {
    const subscriptionIds = Array.from({ length: 2_000 }, () => subscriptionIdIn(0));
    const sent = event({ dataJson });
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds };
    await storeEvent(store, stored);
    const repeated = { ...stored, event: { ...sent, dataJson: '{"id":"s"}' } };
    expect(await storeEvent(store, repeated)).toEqual({ kept: { ...stored, event: { ...sent, dataJson: kept } } });
    expect(await storeEvent(store, stored)).toEqual({ kept: stored });
  });
});
