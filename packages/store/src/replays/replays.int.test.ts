/** What replays guarantee on a real Redis, with time in the test’s hands. */
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, partitionOf, StorageUnavailable } from '@posthorn/core';
import {
  activeReplays,
  addressesToRelease,
  cancelReplay,
  changeSubscription,
  clearDeletedSubscription,
  continueReplay,
  deleteSubscription,
  deletionOf,
  listDeliveries,
  listReplays,
  loadReplays,
  rehearseReplay,
  replayDelivery,
  startReplay,
  stepReplay,
} from '../index.ts';
import { prefixOfSubscription, queueKey } from '../keys.ts';
import { loadOne, release, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';
import { anna, deliverTo, end, failed, ofAll, replaysIn, run, start } from './test-replays.ts';

const rehearse = (subscriptionId: string) => rehearseReplay(store, { subscriptionId, ...ofAll }, 1_000, time.nowMs);

describe('a replay of one delivery', () => {
  it('is a new delivery of the same event with no attempt yet, and says what it replays', async () => {
    const { id } = await subscribe();
    const source = await loadOne(await failed(id));
    const made = await replayDelivery(store, source, time.nowMs, anna, 'nonce');
    if ('refused' in made) throw new Error(made.refused);
    expect(made.deliveryId).not.toBe(source.id);
    expect(await loadOne(made.deliveryId)).toMatchObject({
      eventId: source.eventId,
      status: 'pending',
      attemptCount: 0,
      replayOf: source.id,
      createdAtMs: time.nowMs,
    });
    const ofEvent = await listDeliveries(store, { eventId: source.eventId }, { limit: 10 });
    expect(ofEvent.items.map((delivery) => delivery.id).sort()).toEqual([source.id, made.deliveryId].sort());
  });
  it('has its job in the queue as soon as it is made, and none if it is refused', async () => {
    const { id } = await subscribe();
    const source = await loadOne(await failed(id));
    const waiting = () => store.redis.lrange(queueKey(prefixOfSubscription(store, id), 'wait'), 0, -1);
    await store.redis.del(queueKey(prefixOfSubscription(store, id), 'wait'));
    const made = await replayDelivery(store, source, time.nowMs, anna);
    if ('refused' in made) throw new Error(made.refused);
    expect(await waiting()).toEqual([made.deliveryId]);
    const pending = await loadOne(made.deliveryId);
    expect(await replayDelivery(store, pending, time.nowMs, anna)).toEqual({ refused: 'not_failed' });
    expect(await waiting()).toEqual([made.deliveryId]);
  });
  it('is possible for exactly 30 days after the failure', async () => {
    const { id } = await subscribe();
    const source = await loadOne(await failed(id));
    time.nowMs += RETENTION + 1;
    expect(await replayDelivery(store, source, time.nowMs, anna, 'a')).toEqual({ refused: 'too_late' });
    time.nowMs -= 1;
    expect(await replayDelivery(store, source, time.nowMs, anna, 'a')).toEqual({ deliveryId: expect.any(String) });
  });
  it('that is refused does not keep the event longer', async () => {
    const { id } = await subscribe();
    const erased = { ...(await loadOne(await failed(id))), erased: true };
    const pending = await loadOne(await deliverTo(id));
    const old = await loadOne(await failed(id));
    const lives = async () => {
      const keys = (await store.redis.keys(`${store.prefix}:*:event:*`)).sort();
      return await Promise.all(keys.map((key) => store.redis.call('PEXPIRETIME', key)));
    };
    time.nowMs += RETENTION;
    const before = await lives();
    expect(await replayDelivery(store, erased, time.nowMs, anna)).toEqual({ refused: 'erased' });
    expect(await replayDelivery(store, pending, time.nowMs, anna)).toEqual({ refused: 'not_failed' });
    time.nowMs += 1;
    expect(await replayDelivery(store, old, time.nowMs, anna)).toEqual({ refused: 'too_late' });
    expect(await run(await start(id))).toMatchObject({ replayed: 0, skipped: 2 });
    expect(await lives()).toEqual(before);
  });
  it('is refused, and stores nothing, unless the delivery failed and its address is active', async () => {
    const { id } = await subscribe();
    const pending = await loadOne(await deliverTo(id));
    expect(await replayDelivery(store, pending, time.nowMs, anna, 'a')).toEqual({ refused: 'not_failed' });
    const source = await loadOne(await failed(id));
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    expect(await replayDelivery(store, source, time.nowMs, anna, 'a')).toEqual({ refused: 'not_active' });
    await deleteSubscription(store, id, time.nowMs, { operator: anna });
    expect(await replayDelivery(store, source, time.nowMs, anna, 'a')).toEqual({ refused: 'not_active' });
    expect(await replaysIn(id)).toEqual([]);
  });
});

describe('a bulk replay', () => {
  it('keeps the event of what it replays for as long as the new delivery may need it', async () => {
    const { id } = await subscribe();
    await failed(id);
    time.nowMs += RETENTION;
    expect(await run(await start(id))).toMatchObject({ replayed: 1 });
    const [key] = await store.redis.keys(`${store.prefix}:*:event:*`);
    expect(await store.redis.pexpiretime(key!)).toBe(time.nowMs + RETENTION + DAY_MS);
  });
  it('that a failover loses right after its start is refused as unavailable, as if it had never been stored', async () => {
    const { id } = await subscribe();
    await failed(id);
    // A connection whose first reading comes after the loss.
    const hgetall = async (key: string) => {
      await store.redis.del(key);
      return await store.redis.hgetall(key);
    };
    const redis: typeof store.redis = Object.create(store.redis, { hgetall: { value: hgetall } });
    const starting = startReplay({ ...store, redis }, { subscriptionId: id, ...ofAll }, time.nowMs, anna);
    await expect(starting).rejects.toThrow(StorageUnavailable);
  });
  it('is not there, continued or cancelled if only the first writes of the script are left', async () => {
    const { id } = await subscribe();
    await failed(id);
    const canaryId = await start(id, { canary: true });
    const prefix = `${store.prefix}:{${partitionOf(id, store.partitions)}}`;
    /**
     * Runs a script with a key of a wrong type, so that it ends at its first use of the key; what it has written stays.
     */
    const halve = async (key: string, script: () => Promise<unknown>) => {
      await store.redis.rename(key, `${key}_kept`);
      await store.redis.set(key, 'wrong');
      await expect(script()).rejects.toThrow('WRONGTYPE');
      await store.redis.rename(`${key}_kept`, key);
    };
    await halve(`${prefix}:replays`, () => start(id));
    const listed = await listReplays(store, { subscriptionId: id }, { limit: 10 });
    expect(listed.items.map((replay) => replay.id)).toEqual([canaryId]);
    const running = () => activeReplays(store, partitionOf(id, store.partitions), 20);
    for (const half of await running())
      if (half !== canaryId) expect(await stepReplay(store, half, time.nowMs)).toBe('over');
    expect(await running()).toEqual([canaryId]);
    const status = async () => (await loadReplays(store, [canaryId]))[0]?.status;
    const active = `${prefix}:replays_active`;
    await halve(active, () => continueReplay(store, canaryId, time.nowMs, anna));
    expect(await status()).toBe('canary');
    await halve(active, () => cancelReplay(store, canaryId, time.nowMs, anna));
    expect(await status()).toBe('canary');
  });
  it('parks its deliveries, of which a step makes many in one millisecond, in the order of the failed ones', async () => {
    const { id } = await subscribe();
    const ids: string[] = [];
    for (let i = 0; i < 12; i++) {
      ids.push(await failed(id));
      time.nowMs += 1;
    }
    await run(await start(id));
    const lane = `${store.prefix}:{${partitionOf(id, store.partitions)}}:parked:${id}`;
    const parked = await Promise.all((await store.redis.zrange(lane, '0', '-1')).map(loadOne));
    expect(parked.map(({ replayOf }) => replayOf)).toEqual(ids);
  });
  it('replays each failed delivery of the address and time range once, oldest first, and no other', async () => {
    const [wanted, other] = [await subscribe(), await subscribe()];
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push(await failed(wanted.id));
      await failed(other.id);
      time.nowMs += 1_000;
    }
    await end(await deliverTo(wanted.id), { kind: 'succeeded' });
    const fromMs = (await loadOne(ids[1]!)).createdAtMs;
    const toMs = (await loadOne(ids[3]!)).createdAtMs;
    const replayId = await start(wanted.id, { fromMs, toMs });
    expect((await loadReplays(store, [replayId]))[0]).toMatchObject({ status: 'running', total: 3, replayed: 0 });
    expect(await run(replayId)).toMatchObject({ status: 'done', total: 3, replayed: 3, skipped: 0, operator: 'anna' });
    expect((await replaysIn(wanted.id)).map(({ replayOf }) => replayOf).sort()).toEqual(ids.slice(1, 4).sort());
    expect(await replaysIn(other.id)).toEqual([]);
    expect(await activeReplays(store, partitionOf(wanted.id, store.partitions), 20)).toEqual([]);
  });
  it('parks its deliveries, which wait for slots of their address only', async () => {
    const { id } = await subscribe();
    await failed(id);
    await run(await start(id));
    const partition = partitionOf(id, store.partitions);
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([id]);
    const [released] = await release('parked', id, 10);
    expect(await loadOne(released!.deliveryId)).toMatchObject({ status: 'pending', generation: 1 });
  });
  it('counts a step once if it is repeated or done by two at once', async () => {
    const { id } = await subscribe();
    // All in one millisecond, and more than one step.
    for (let i = 0; i < 230; i++) await failed(id);
    const replayId = await start(id);
    for (let more = true; more; ) {
      const answers = await Promise.all(Array.from({ length: 4 }, () => stepReplay(store, replayId, time.nowMs)));
      more = answers.includes('more');
    }
    expect((await loadReplays(store, [replayId]))[0]).toMatchObject({
      status: 'done',
      total: 230,
      replayed: 230,
      skipped: 0,
    });
    const replays = await replaysIn(id);
    expect(new Set(replays.map(({ replayOf }) => replayOf)).size).toBe(230);
  });
  it('skips a delivery whose replay is unfinished or has succeeded, and replays it again if that failed', async () => {
    const { id } = await subscribe();
    const [onItsWay, succeeded, failedAgain] = [await failed(id), await failed(id), await failed(id)];
    for (const [source, verdict] of [
      [onItsWay, undefined],
      [succeeded, { kind: 'succeeded' }],
      [failedAgain, { kind: 'failed', reason: 'status' }],
    ] as const) {
      const made = await replayDelivery(store, await loadOne(source), time.nowMs, anna, source);
      if ('refused' in made) throw new Error(made.refused);
      if (verdict) await end(made.deliveryId, verdict);
    }
    time.nowMs += 1;
    // The delivery that failed again and its failed replay are both failed deliveries of one event: it goes out once.
    expect(await run(await start(id))).toMatchObject({ total: 4, replayed: 1, skipped: 3 });
    expect(await run(await start(id))).toMatchObject({ total: 4, replayed: 0, skipped: 4 });
  });
  it('skips a delivery whose replay has succeeded for as long as it could be replayed, also when that is no longer kept', async () => {
    const { id } = await subscribe();
    const source = await loadOne(await failed(id));
    const made = await replayDelivery(store, source, time.nowMs, anna, 'nonce');
    if ('refused' in made) throw new Error(made.refused);
    await end(made.deliveryId, { kind: 'succeeded' });
    // It expires after RETENTION_SUCCEEDED, before the delivery that it replays.
    await store.redis.del(`${store.prefix}:{${partitionOf(id, store.partitions)}}:delivery:${made.deliveryId}`);
    time.nowMs += RETENTION;
    expect(await rehearse(id)).toMatchObject({ count: 0, underWay: 1 });
    expect(await run(await start(id))).toMatchObject({ total: 1, replayed: 0, skipped: 1 });
    expect(await replayDelivery(store, source, time.nowMs, anna, 'again')).toEqual({ deliveryId: expect.any(String) });
  });
  it('skips what failed too long ago, and does not count what is no longer kept', async () => {
    const { id } = await subscribe();
    const [old, gone] = [await failed(id), await failed(id)];
    time.nowMs += RETENTION + 1;
    const fresh = await failed(id);
    const key = `${store.prefix}:{${partitionOf(id, store.partitions)}}:delivery:${gone}`;
    await store.redis.del(key);
    expect(await run(await start(id))).toMatchObject({ total: 2, replayed: 1, skipped: 1 });
    expect((await replaysIn(id)).map(({ replayOf }) => replayOf)).toEqual([fresh]);
    expect((await loadOne(old)).status).toBe('failed');
  });
  it('holds its deliveries while the address is paused, and fails when the subscription is deleted', async () => {
    const { id } = await subscribe();
    await failed(id);
    const first = await start(id);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    expect(await run(first)).toMatchObject({ status: 'done', replayed: 1 });
    expect((await replaysIn(id))[0]).toMatchObject({ status: 'held' });
    expect(await startReplay(store, { subscriptionId: id, ...ofAll }, time.nowMs, anna)).toBe('not_active');
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active' }));
    const second = await start(id);
    await deleteSubscription(store, id, time.nowMs, { operator: anna });
    expect(await run(second)).toMatchObject({ status: 'failed', replayed: 0 });
    expect(await startReplay(store, { subscriptionId: id, ...ofAll }, time.nowMs, anna)).toBe('no_subscription');
    const listed = (await listReplays(store, { subscriptionId: id }, { limit: 10 })).items.map((replay) => replay.id);
    expect(listed.sort()).toEqual([first, second].sort());
  });
  it('does not go on for a subscription that was created again under its key', async () => {
    const { id } = await subscribe();
    for (let i = 0; i < 6; i++) await failed(id);
    const [whole, canary] = [await start(id), await start(id, { canary: true })];
    await stepReplay(store, canary, time.nowMs);
    await deleteSubscription(store, id, time.nowMs, { operator: anna });
    await clearDeletedSubscription(store, id, await deletionOf(store, id));
    time.nowMs += 1;
    await subscribe({ id });
    expect(await run(whole)).toMatchObject({ status: 'failed', replayed: 0 });
    for (const made of await replaysIn(id)) await end(made.id, { kind: 'succeeded' });
    expect(await run(canary)).toMatchObject({ status: 'failed', replayed: 5 });
    const fresh = await start(id);
    expect(await run(fresh)).toMatchObject({ status: 'done' });
  });
});
