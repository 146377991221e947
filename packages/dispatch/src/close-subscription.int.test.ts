/** What the deletion of a subscription leaves in Redis. */
import { describe, expect, it, jest } from '@jest/globals';
import { type EventRef, partitionOf, type Verdict } from '@posthorn/core';
import { createJobQueues } from '@posthorn/queue';
import {
  changeSubscription,
  clearDeletedSubscription,
  closingSubscriptions,
  deleteSubscription,
  deletionOf,
  laneLength,
  loadSubscriptions,
  partitionPrefix,
  type Store,
} from '@posthorn/store';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import {
  attempt,
  begin,
  deliver,
  failure,
  loadOne,
  loseJob,
  store,
  subscribe,
  time,
} from '../../store/src/test-deliveries.ts';
import { closeSubscription } from './close-subscription.ts';

describe('closeSubscription', () => {
  it('ends unfinished deliveries, and leaves nothing of the subscription but what retention keeps', async () => {
    const subscription = await subscribe();
    const [pending] = await deliver([subscription.id]);
    const [done] = await deliver([subscription.id]);
    await attempt(done!.deliveryId, 1, { kind: 'succeeded' });
    await loseJob(done!.deliveryId);
    await changeSubscription(store, subscription.id, (now) => ({ ...now, status: 'paused' }));
    const [held] = await deliver([subscription.id]);
    await deleteSubscription(store, subscription.id, time.nowMs, { operator: 'anna' });
    expect(
      await begin({ deliveryId: pending!.deliveryId, generation: 0, subscriptionId: subscription.id }, time.nowMs),
    ).toMatchObject({
      kind: 'subscription_deleted',
    });
    const onError = (error: Error) => {
      throw error;
    };
    const partitionPrefixes = [0, 1, 2, 3].map((number) => partitionPrefix(store, number));
    const jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes, onError });
    await jobQueues.ready();
    const partition = partitionOf(subscription.id, store.partitions);
    // The job that it had when it was held.
    const { deliveryId, subscriptionId } = held!;
    await addJobs(jobQueues, partition, [{ deliveryId, generation: 0, subscriptionId, event: 'event' as EventRef }]);
    const queued = async () => await jobQueues.all[partition]!.getJobCountByTypes('wait');
    expect(await queued()).toBe(2);
    await close(subscription.id);
    // Redis would search the whole queue for each: workers find their deliveries ended.
    expect(await queued()).toBe(2);
    await jobQueues.close();
    for (const id of [pending!.deliveryId, held!.deliveryId]) {
      expect(await loadOne(id)).toMatchObject({
        status: 'failed',
        failureReason: 'subscription_deleted',
        attemptCount: 0,
      });
    }
    expect((await loadOne(done!.deliveryId)).status).toBe('succeeded');
    for (const key of await store.redis.keys(`${store.prefix}:*${subscription.id}*`)) {
      expect([key, (await store.redis.pttl(key)) > 0]).toEqual([key, true]);
    }
    expect(await deleteSubscription(store, subscription.id, time.nowMs, { operator: 'anna' })).toBe(false);
  });
  it('looks at nothing that has ended, however much that is', async () => {
    // All in one partition.
    const [first, second, third] = ['a', 'c', '1'].map((end) => `sub_${end.padStart(22, 'x')}`) as [
      string,
      string,
      string,
    ];
    const commandsToClose = async (id: string) => {
      const [left] = await deliver([id]);
      await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
      const sendCommand = jest.spyOn(store.redis, 'sendCommand');
      await close(id);
      const commands = sendCommand.mock.calls.map(([{ name }]) => name);
      sendCommand.mockRestore();
      expect((await loadOne(left!.deliveryId)).failureReason).toBe('subscription_deleted');
      return commands;
    };
    for (const id of [first, second, third]) await subscribe({ id });
    // The first time, scripts are loaded.
    await commandsToClose(first);
    const expected = await commandsToClose(second);
    for (let i = 0; i < 20; i++) {
      const [done] = await deliver([third]);
      await attempt(done!.deliveryId, 1, i % 2 ? failure : { kind: 'succeeded' });
    }
    expect(await commandsToClose(third)).toEqual(expected);
  });
  it('removes the jobs of retries, which would wait until they are due', async () => {
    const { id } = await subscribe();
    const prefix = `${partitionPrefix(store, partitionOf(id, store.partitions))}:deliveries`;
    const retries: string[] = [];
    for (const list of ['delayed', 'prioritized']) {
      const [retry] = await deliver([id]);
      await attempt(retry!.deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
      await store.redis.lrem(`${prefix}:wait`, 0, retry!.deliveryId);
      await store.redis.zadd(`${prefix}:${list}`, 1, retry!.deliveryId);
      retries.push(retry!.deliveryId);
    }
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    await close(id);
    for (const retry of retries) {
      expect((await loadOne(retry)).failureReason).toBe('subscription_deleted');
      expect(await store.redis.exists(`${prefix}:${retry}`)).toBe(0);
      for (const list of ['delayed', 'prioritized'])
        expect(await store.redis.zscore(`${prefix}:${list}`, retry)).toBeNull();
    }
  });
  it('ends one whose attempt fails meanwhile, and that then waits for its retry', async () => {
    const { id } = await subscribe();
    const [inFlight] = await deliver([id]);
    await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
    await deliver([id]);
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    const retry: Verdict = { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 };
    let isFirst = true;
    const fail = async () => {
      if (isFirst) await attempt(inFlight!.deliveryId, 1, retry);
      isFirst = false;
    };
    await closeSubscription(storeWith(fail), id, time.nowMs);
    expect((await loadOne(inFlight!.deliveryId)).failureReason).toBe('subscription_deleted');
  });
  it('leaves one alone that was created again under its key, however late it comes', async () => {
    const { id } = await subscribe();
    const [old] = await deliver([id]);
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    const made: string[] = [];
    const createAgain = async () => {
      if (made.length > 0) return;
      await close(id);
      await subscribe({ id });
      made.push((await deliver([id]))[0]!.deliveryId);
      await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
      made.push((await deliver([id]))[0]!.deliveryId);
    };
    // One process is between two steps, another one begins.
    await closeSubscription(storeWith(createAgain), id, time.nowMs);
    await close(id);
    expect((await loadOne(old!.deliveryId)).failureReason).toBe('subscription_deleted');
    expect(await loadSubscriptions(store, [id])).toMatchObject([{ id, status: 'paused' }]);
    expect(await Promise.all(made.map(async (each) => (await loadOne(each)).status))).toEqual(['pending', 'held']);
    expect(await laneLength(store, 'held', id)).toBe(1);
  });
  it('leaves the work on a later deletion to whoever does it', async () => {
    const { id } = await subscribe();
    await deliver([id]);
    const remove = async () => {
      await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    };
    await remove();
    let isAgain = false;
    const deleteAgain = async () => {
      if (isAgain) return;
      isAgain = true;
      await close(id);
      await subscribe({ id });
      await deliver([id]);
      await remove();
    };
    await closeSubscription(storeWith(deleteAgain), id, time.nowMs);
    expect(await closingSubscriptions(store, partitionOf(id, store.partitions))).toEqual([id]);
    await close(id);
    expect(await closingSubscriptions(store, partitionOf(id, store.partitions))).toEqual([]);
  });
  it('begins again where a failover has undone the end of held deliveries', async () => {
    const { id } = await subscribe({ status: 'paused' });
    const [held] = await deliver([id]);
    await deleteSubscription(store, id, time.nowMs, { operator: 'anna' });
    const partition = partitionOf(id, store.partitions);
    await clearDeletedSubscription(store, id, await deletionOf(store, id));
    expect(await closingSubscriptions(store, partition)).toEqual([id]);
    await close(id);
    expect(await closingSubscriptions(store, partition)).toEqual([]);
    expect((await loadOne(held!.deliveryId)).failureReason).toBe('subscription_deleted');
  });
});

const close = (id: string) => closeSubscription(store, id, time.nowMs);

/** A store with which `act` is called between two steps. */
function storeWith(act: () => Promise<void>): Store {
  let isFirst = true;
  const redis = new Proxy(store.redis, {
    get(target, name: string) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (name === 'zscan' && !isFirst) await act();
        if (name === 'zscan') isFirst = false;
        return await value.apply(target, args);
      };
    },
  });
  return { ...store, redis };
}
