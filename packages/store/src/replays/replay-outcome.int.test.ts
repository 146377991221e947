/** What becomes of a bulk replay's deliveries, its filters, its canary and its cancellation, on a real Redis. */
import { describe, expect, it } from '@jest/globals';
import { partitionOf, type ReplayFilter } from '@posthorn/core';
import {
  activeReplays,
  cancelReplay,
  changeSubscription,
  continueReplay,
  countCovered,
  deleteSubscription,
  listDeliveries,
  loadReplays,
  releaseDeliveries,
  stepCancellation,
  stepReplay,
} from '../index.ts';
import { prefixOfSubscription, queueKey } from '../keys.ts';
import { deliver, event, failure, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { anna, end, failed, noFilter, ofAll, replaysIn, run, start } from './test-replays.ts';

const read = async (id: string) => (await loadReplays(store, [id]))[0]!;
const activeOf = (subscriptionId: string) => activeReplays(store, partitionOf(subscriptionId, store.partitions), 20);
const listed = async (replayId: string) =>
  (await listDeliveries(store, { replayId }, { limit: 250 })).items.map(({ id }) => id).sort();
/** Runs the steps of a cancellation until it has nothing more to do at once. */
async function sweep(replayId: string): Promise<void> {
  while (await stepCancellation(store, replayId, time.nowMs));
}
async function manyFailed(subscriptionId: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await failed(subscriptionId);
}

describe('the outcome of a bulk replay', () => {
  it('counts its deliveries as they end, and lists exactly them', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 4);
    const replayId = await start(id);
    expect(await run(replayId)).toMatchObject({ status: 'done', outcome: { delivered: 0, failed: 0, waiting: 4 } });
    // Another delivery and another replay of the same address, at the same time.
    await failed(id);
    await run(await start(id));
    const made = await listed(replayId);
    expect(made.length).toBe(4);
    await end(made[0]!, { kind: 'succeeded' });
    await end(made[1]!, { kind: 'succeeded' });
    await end(made[2]!);
    expect((await read(replayId)).outcome).toEqual({ delivered: 2, failed: 1, cancelled: 0, waiting: 1, unknown: 0 });
    expect(await listed(replayId)).toEqual(made);
    expect(await listDeliveries(store, { replayId, status: 'failed' }, { limit: 10 })).toMatchObject({
      items: [{ id: made[2] }],
    });
  });
  it('counts an attempt that is recorded twice once, and none for a delivery that no bulk replay made', async () => {
    const { id } = await subscribe();
    await failed(id);
    const replayId = await start(id);
    await run(replayId);
    const [made] = await listed(replayId);
    const before = await loadOne(made!);
    await end(before.id, { kind: 'succeeded' });
    await end(before.id, { kind: 'succeeded' });
    await failed(id);
    expect((await read(replayId)).outcome).toMatchObject({ delivered: 1, failed: 0, waiting: 0 });
  });
  it('is lost without a trace where the record has expired before the delivery ends', async () => {
    const { id } = await subscribe();
    await failed(id);
    const replayId = await start(id);
    await run(replayId);
    const [made] = await listed(replayId);
    const key = `${store.prefix}:{${partitionOf(id, store.partitions)}}:replay:${replayId}`;
    await store.redis.del(key);
    await end(made!, { kind: 'succeeded' });
    expect(await store.redis.exists(key)).toBe(0);
  });
  it('of what was made before outcomes were counted is unknown', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 2);
    const replayId = await start(id);
    const key = `${store.prefix}:{${partitionOf(id, store.partitions)}}:replay:${replayId}`;
    await store.redis.hdel(key, 'counted', 'delivered', 'failed', 'cancelled');
    await store.redis.hset(key, 'replayed', 3);
    expect(await run(replayId)).toMatchObject({ status: 'done', replayed: 5, outcome: { unknown: 3, waiting: 2 } });
    expect(await activeOf(id)).toEqual([]);
  });
  it('leaves nothing of the list that release 0.1.0 kept', async () => {
    const { id } = await subscribe();
    const key = `${store.prefix}:{${partitionOf(id, store.partitions)}}:replays_open`;
    await store.redis.zadd(key, 1, 'rpl_of_0_1_0');
    await run(await start(id));
    expect(await store.redis.exists(key)).toBe(0);
  });
});

describe('the filter of a bulk replay', () => {
  it('covers the types, errors and times of failure that it names', async () => {
    const { id } = await subscribe();
    const make = async (type: 'session.created' | 'session.approved', reason: 'timeout' | 'status') => {
      const [made] = await deliver([id], event({ type }));
      time.nowMs += 1_000;
      await end(made!.deliveryId, { kind: 'failed', reason });
      return made!.deliveryId;
    };
    const ids = [
      await make('session.created', 'timeout'),
      await make('session.approved', 'timeout'),
      await make('session.approved', 'status'),
    ];
    const covered = async (filter: Partial<ReplayFilter>) => {
      const scope = { ...ofAll, subscriptionId: id, filter: { ...noFilter, ...filter } };
      return await countCovered(store, scope, time.nowMs);
    };
    expect(await covered({})).toEqual({ count: 3, isComplete: true });
    expect(await covered({ eventType: 'session.approved' })).toEqual({ count: 2, isComplete: true });
    expect(await covered({ error: 'timeout' })).toEqual({ count: 2, isComplete: true });
    const second = (await loadOne(ids[1]!)).finishedAtMs!;
    expect((await covered({ failedFromMs: second })).count).toBe(2);
    expect((await covered({ failedFromMs: second + 1 })).count).toBe(1);
    expect((await covered({ failedToMs: second })).count).toBe(2);
    const filter = { ...noFilter, eventType: 'session.approved', error: 'timeout', failedToMs: second } as const;
    const replay = await run(await start(id, { filter }));
    expect(replay).toMatchObject({ status: 'done', total: 1, replayed: 1, skipped: 0, filter });
    expect((await replaysIn(id)).map(({ replayOf }) => replayOf)).toEqual([ids[1]]);
  });
});

describe('a canary', () => {
  const withCanary = async (count: number) => {
    const { id } = await subscribe();
    await manyFailed(id, count);
    const replayId = await start(id, { canary: true });
    expect(await run(replayId)).toMatchObject({ status: 'canary', canary: true, replayed: 5, total: count });
    return { id, replayId, made: await listed(replayId) };
  };
  it('of five deliveries is made first; the others follow when all five are delivered', async () => {
    const { replayId, made } = await withCanary(120);
    for (const id of made.slice(1)) await end(id, { kind: 'succeeded' });
    expect(await run(replayId)).toMatchObject({ status: 'canary', replayed: 5 });
    await end(made[0]!, { kind: 'succeeded' });
    expect(await run(replayId)).toMatchObject({
      status: 'done',
      replayed: 120,
      outcome: { delivered: 5, waiting: 115 },
    });
    expect((await listed(replayId)).length).toBe(120);
  });
  it('halts the replay at its first failed attempt, until an operator continues it', async () => {
    const { id, replayId, made } = await withCanary(12);
    await end(made[0]!, { kind: 'succeeded' });
    await end(made[1]!, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    expect(await run(replayId)).toMatchObject({ status: 'halted', replayed: 5 });
    expect(await activeOf(id)).toEqual([]);
    expect(await stepReplay(store, replayId, time.nowMs)).toBe('over');
    expect(await continueReplay(store, replayId, time.nowMs, anna)).toBe('continued');
    expect(await activeOf(id)).toEqual([replayId]);
    expect(await run(replayId)).toMatchObject({ status: 'done', replayed: 12 });
    expect(await continueReplay(store, replayId, time.nowMs, anna)).toBe('done');
  });
  it('of a replay with no more than five ends with it', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 3);
    expect(await run(await start(id, { canary: true }))).toMatchObject({ status: 'done', replayed: 3 });
  });
  it('ends as failed when the subscription is deleted', async () => {
    const { id, replayId } = await withCanary(7);
    await deleteSubscription(store, id, time.nowMs, { operator: anna });
    await end((await listed(replayId))[0]!, failure);
    expect(await run(replayId)).toMatchObject({ status: 'failed' });
    expect(await activeOf(id)).toEqual([]);
  });
  it('is as small beside deliveries that have a replay already, which it passes over at once', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 30);
    const earlier = await start(id);
    await run(earlier);
    for (const made of await listed(earlier)) await end(made, { kind: 'succeeded' });
    time.nowMs += 1;
    await manyFailed(id, 7);
    const replayId = await start(id, { canary: true });
    expect(await stepReplay(store, replayId, time.nowMs)).toBe('more');
    expect(await read(replayId)).toMatchObject({ status: 'canary', replayed: 5, skipped: 30 });
    expect(await stepReplay(store, replayId, time.nowMs)).toBe('undecided');
    for (const made of await listed(replayId)) await end(made, { kind: 'succeeded' });
    expect(await run(replayId)).toMatchObject({ status: 'done', replayed: 7, skipped: 30, total: 37 });
  });
});

describe('a cancellation', () => {
  it('ends what has had no attempt in every lane, keeps the rest, and lets it be replayed later', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 230);
    const replayId = await start(id);
    await stepReplay(store, replayId, time.nowMs);
    await stepReplay(store, replayId, time.nowMs);
    // In the order in which they are released: the first ones leave the lane before the address is paused.
    const lane = `${store.prefix}:{${partitionOf(id, store.partitions)}}:parked:${id}`;
    const made = await store.redis.zrange(lane, '0', '-1');
    expect(made.length).toBe(200);
    const [delivered, retrying] = made;
    await end(delivered!, { kind: 'succeeded' });
    await end(retrying!, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
    // Some are held, some in the queue.
    await releaseDeliveries(store, 'parked', id, 20, time.nowMs);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    await releaseDeliveries(store, 'parked', id, 20, time.nowMs);
    expect(await cancelReplay(store, replayId, time.nowMs, anna)).toEqual({ kind: 'cancelled' });
    expect(await stepReplay(store, replayId, time.nowMs)).toBe('over');
    expect(await activeOf(id)).toEqual([replayId]);
    await sweep(replayId);
    expect(await read(replayId)).toMatchObject({
      status: 'cancelled',
      replayed: 200,
      outcome: { delivered: 1, failed: 0, cancelled: 198, waiting: 1 },
    });
    expect(await activeOf(id)).toEqual([]);
    expect(await loadOne(made[5]!)).toMatchObject({ status: 'failed', failureReason: 'cancelled', attemptCount: 0 });
    expect(await loadOne(retrying!)).toMatchObject({ status: 'waiting_for_retry' });
    for (const lane of ['held', 'parked', 'overdue'])
      expect(await store.redis.zcard(`${store.prefix}:{${partitionOf(id, store.partitions)}}:${lane}:${id}`)).toBe(0);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'active' }));
    time.nowMs += 1;
    expect(await run(await start(id))).toMatchObject({ status: 'done', replayed: 228 });
  });
  it('is possible while deliveries of a finished replay wait, and refused when none does', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 2);
    const replayId = await start(id);
    await run(replayId);
    const made = await listed(replayId);
    await end(made[0]!, { kind: 'succeeded' });
    expect(await cancelReplay(store, replayId, time.nowMs, anna)).toEqual({ kind: 'cancelled' });
    expect(await cancelReplay(store, replayId, time.nowMs, anna)).toEqual({ kind: 'over', status: 'cancelled' });
    await sweep(replayId);
    expect((await read(replayId)).outcome).toMatchObject({ delivered: 1, cancelled: 1, waiting: 0 });
    const second = await start(id);
    await run(second);
    for (const made of await listed(second)) await end(made, { kind: 'succeeded' });
    expect(await cancelReplay(store, second, time.nowMs, anna)).toEqual({ kind: 'over', status: 'done' });
    expect(await cancelReplay(store, 'rpl_AAAAAAAAAAAAAAAAAAAAAAAAAA', time.nowMs, anna)).toEqual({ kind: 'gone' });
  });
  it('leaves what a worker has in flight, and sweeps again until that has an attempt', async () => {
    const { id } = await subscribe();
    await manyFailed(id, 3);
    const replayId = await start(id);
    await run(replayId);
    await releaseDeliveries(store, 'parked', id, 1, time.nowMs);
    const [inFlight] = (await replaysIn(id)).filter(({ generation }) => generation === 1);
    const lock = queueKey(prefixOfSubscription(store, id), `${inFlight!.id}.1:lock`);
    await store.redis.set(lock, 'token');
    await cancelReplay(store, replayId, time.nowMs, anna);
    await sweep(replayId);
    expect(await loadOne(inFlight!.id)).toMatchObject({ status: 'pending' });
    expect((await read(replayId)).outcome).toMatchObject({ cancelled: 2, waiting: 1 });
    expect(await activeOf(id)).toEqual([replayId]);
    await end(inFlight!.id, { kind: 'succeeded' });
    await sweep(replayId);
    expect((await read(replayId)).outcome).toMatchObject({ delivered: 1, cancelled: 2, waiting: 0 });
    expect(await activeOf(id)).toEqual([]);
  });
  it('looks again at what a worker had and put back without an attempt', async () => {
    const { id } = await subscribe();
    await failed(id);
    const replayId = await start(id);
    await run(replayId);
    const [made] = await listed(replayId);
    const lock = queueKey(prefixOfSubscription(store, id), `${made}:lock`);
    await store.redis.set(lock, 'token');
    await cancelReplay(store, replayId, time.nowMs, anna);
    await sweep(replayId);
    await store.redis.del(lock);
    await sweep(replayId);
    expect(await loadOne(made!)).toMatchObject({ status: 'failed', failureReason: 'cancelled' });
    expect(await activeOf(id)).toEqual([]);
  });
});
