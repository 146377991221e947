/** Interrupted fan-outs are finished, each by one process, on a real Redis. */
import { describe, expect, it, jest } from '@jest/globals';
import { deliveryId, eventRef, partitionOf, StorageUnavailable } from '@posthorn/core';
import { loadDeliveries, storeEvent } from '../index.ts';
import { bySubscriptionKey, fanningOutKey, partitionPrefix, prefixOfSubscription } from '../keys.ts';
import { event, interrupted, store, subscribe, subscriptionIdIn, time } from '../test-deliveries.ts';
import { claimFanOut, confirmFanOut, renewFanOut } from './events.ts';
import { finishFanOuts, makeDeliveries } from './make-deliveries.ts';

const logger = { info() {}, warn() {} };
const contextAt = (nowMs: number) => ({ store, logger, clock: { now: () => nowMs } });

/** Stores an event without its deliveries. */
async function storeAlone(subscriptionIds: string[], sent = event()) {
  const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs++, subscriptionIds };
  await storeEvent(store, stored);
  return stored;
}

it('a fan-out that Redis does not confirm logs nothing while Redis is away, since that is reported', async () => {
  const warn = jest.fn();
  const context = { ...contextAt(time.nowMs), logger: { info() {}, warn } };
  const stored = await storeAlone([(await subscribe()).id]);
  const confirm = jest.spyOn(store.redis, 'zrem');
  confirm.mockRejectedValueOnce(new StorageUnavailable('away')).mockRejectedValueOnce(new Error('WRONGTYPE'));
  await makeDeliveries(context, stored);
  await makeDeliveries(context, stored);
  await store.redis.ping();
  expect(warn.mock.calls).toEqual([
    [{ err: new Error('WRONGTYPE'), event_id: stored.event.id }, 'fan_out.confirm_failed'],
  ]);
  confirm.mockRestore();
});

describe('interrupted fan-outs', () => {
  it('are finished where another one of the same sweep fails', async () => {
    const { id } = await subscribe();
    // In one partition the sweep takes them by the time of their acceptance.
    const ids = Array.from({ length: 50 }, (_, i) => `e${i}`).filter((eventId) => partitionOf(eventId, 4) === 0);
    const broken = await storeAlone([id], event({ id: ids[0]! }));
    const other = await storeAlone([id], event({ id: ids[1]! }));
    const [key] = await store.redis.keys(`${store.prefix}:*:event:${broken.ref}`);
    await store.redis.del(key!);
    await store.redis.hset(key!, 'wrong', 1);
    time.nowMs += 60_000;
    await expect(finishFanOuts(contextAt(time.nowMs))).rejects.toThrow('WRONGTYPE');
    expect(await interrupted(time.nowMs)).toEqual([broken.ref]);
    expect(await loadDeliveries(store, [deliveryId(other.ref, id)])).toMatchObject([{ status: 'pending' }]);
  });

  it('are finished in the other partitions where one is away', async () => {
    const { id } = await subscribe();
    const inPartition = async (partition: number) => {
      const ids = Array.from({ length: 50 }, (_, i) => `e${i}`);
      return await storeAlone([id], event({ id: ids.find((eventId) => partitionOf(eventId, 4) === partition)! }));
    };
    const [away, other] = [await inPartition(0), await inPartition(1)];
    time.nowMs += 60_000;
    const read = store.redis.zrangebyscore.bind(store.redis) as (key: string, ...args: unknown[]) => Promise<string[]>;
    const spy = jest.spyOn(store.redis, 'zrangebyscore').mockImplementation((async (
      key: string,
      ...args: unknown[]
    ) => {
      if (key === fanningOutKey(partitionPrefix(store, 0))) throw new StorageUnavailable('away');
      return await read(key, ...args);
    }) as typeof store.redis.zrangebyscore);
    const context = contextAt(time.nowMs);
    const inCluster = { ...store, spansPartitions: false };
    await expect(finishFanOuts({ ...context, store: inCluster })).rejects.toThrow(StorageUnavailable);
    spy.mockRestore();
    expect(await interrupted(time.nowMs)).toEqual([away.ref]);
    expect(await loadDeliveries(store, [deliveryId(other.ref, id)])).toMatchObject([{ status: 'pending' }]);
  });

  it('are finished in a partition also where others of it have deliveries in one that is away', async () => {
    const [away, here] = [await subscribe({ id: subscriptionIdIn(1) }), await subscribe({ id: subscriptionIdIn(0) })];
    const ids = Array.from({ length: 50 }, (_, i) => `e${i}`).filter((eventId) => partitionOf(eventId, 4) === 0);
    const waiting = await storeAlone([away.id], event({ id: ids[0]! }));
    const other = await storeAlone([here.id], event({ id: ids[1]! }));
    time.nowMs += 60_000;
    const scripts = store.redis as unknown as Record<string, (prefix: string, ...args: unknown[]) => Promise<unknown>>;
    const run = scripts.script_createDeliveries!.bind(store.redis);
    const spy = jest.spyOn(scripts, 'script_createDeliveries').mockImplementation(async (prefix, ...args) => {
      if (prefix === partitionPrefix(store, 1)) throw new StorageUnavailable('away');
      return await run(prefix, ...args);
    });
    const inCluster = { ...store, spansPartitions: false };
    await expect(finishFanOuts({ ...contextAt(time.nowMs), store: inCluster })).rejects.toThrow(StorageUnavailable);
    spy.mockRestore();
    expect(await interrupted(time.nowMs)).toEqual([waiting.ref]);
    expect(await loadDeliveries(store, [deliveryId(other.ref, here.id)])).toMatchObject([{ status: 'pending' }]);
  });

  it('are finished once, however many processes look for them', async () => {
    const { id } = await subscribe();
    const events = await Promise.all(Array.from({ length: 20 }, () => storeAlone([id])));
    const context = contextAt(time.nowMs + 60_000);
    const counts = await Promise.all(Array.from({ length: 3 }, () => finishFanOuts(context)));
    expect(counts.reduce((sum, count) => sum + count)).toBe(20);
    const made = await loadDeliveries(
      store,
      events.map(({ ref }) => deliveryId(ref, id)),
    );
    expect(made.map((delivery) => delivery?.status)).toEqual(Array(20).fill('pending'));
  });

  it('are left to others by a process that is stopping, but for the one that it is at', async () => {
    const { id } = await subscribe();
    for (let i = 0; i < 3; i++) await storeAlone([id]);
    let begun = 0;
    const stopping = {
      get aborted() {
        return begun++ > 0;
      },
    } as AbortSignal;
    time.nowMs += 60_000;
    expect(await finishFanOuts(contextAt(time.nowMs), stopping)).toBe(1);
    expect(await interrupted(time.nowMs)).toHaveLength(2);
  });

  it('are found again 15 s after whoever claimed them, if that died', async () => {
    const { ref, acceptedAtMs } = await storeAlone([(await subscribe()).id]);
    expect(await finishFanOuts(contextAt(acceptedAtMs + 14_999))).toBe(0);
    const claimedAtMs = acceptedAtMs + 15_000;
    expect(await claimFanOut(store, ref, claimedAtMs)).toBe(true);
    expect(await claimFanOut(store, ref, claimedAtMs)).toBe(false);
    expect(await finishFanOuts(contextAt(claimedAtMs + 14_999))).toBe(0);
    expect(await finishFanOuts(contextAt(claimedAtMs + 15_000))).toBe(1);
  });

  it('are finished at once if the clock of their process was 15 s or more ahead', async () => {
    const { ref, acceptedAtMs } = await storeAlone([(await subscribe()).id]);
    expect(await finishFanOuts(contextAt(acceptedAtMs - 14_999))).toBe(0);
    expect(await finishFanOuts(contextAt(acceptedAtMs - 36_000_000))).toBe(1);
    expect(await claimFanOut(store, ref, acceptedAtMs)).toBe(false);
  });

  it.each([
    [3_000, 9_000],
    [2_999, 5_998],
  ])('count from their last progress: with a script every %i ms, from %i ms on', async (eachMs, progressMs) => {
    const broken = await subscribe({ id: subscriptionIdIn(0) });
    await store.redis.set(bySubscriptionKey(prefixOfSubscription(store, broken.id), broken.id), 'no stream');
    const others = [1, 2].map((partition) => subscriptionIdIn(partition));
    const stored = await storeAlone([broken.id, ...others]);
    let nowMs = stored.acceptedAtMs;
    const clock = {
      now() {
        nowMs += eachMs;
        return nowMs;
      },
    };
    await expect(makeDeliveries({ store, logger, clock }, stored)).rejects.toThrow('WRONGTYPE');
    expect(nowMs).toBe(stored.acceptedAtMs + 3 * eachMs);
    const stoppedAtMs = stored.acceptedAtMs + progressMs;
    expect(await interrupted(stoppedAtMs - 1)).toEqual([]);
    expect(await interrupted(stoppedAtMs)).toEqual([stored.ref]);
  });

  it('do not come back where one is renewed or claimed after it was confirmed', async () => {
    const { ref, acceptedAtMs } = await storeAlone([(await subscribe()).id]);
    await confirmFanOut(store, ref);
    await renewFanOut(store, ref, acceptedAtMs);
    expect(await claimFanOut(store, ref, acceptedAtMs + 15_000)).toBe(false);
    expect(await interrupted(acceptedAtMs)).toEqual([]);
  });
});
