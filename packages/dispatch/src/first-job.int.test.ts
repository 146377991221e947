/** That the scripts of the store which make deliveries add the same jobs as BullMQ would, on a real Redis. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryId, eventRef } from '@posthorn/core';
import { createJobQueues, type JobQueues } from '@posthorn/queue';
import { createDeliveries, partitionPrefix, storeEvent } from '@posthorn/store';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { deliver, event, store, subscribe, subscriptionIdIn, time } from '../../store/src/test-deliveries.ts';

/** Scripts of the store add jobs to the queue of the first partition, BullMQ to that of the second. */
const [OURS, THEIRS] = [0, 1];
let jobQueues: JobQueues;
beforeEach(async () => {
  const onError = (error: Error) => Promise.reject(error);
  const partitionPrefixes = [0, 1, 2, 3].map((partition) => partitionPrefix(store, partition));
  jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes, onError });
  await jobQueues.ready();
});
afterEach(() => jobQueues.close());

const subscribeIn = async (partition: number) => (await subscribe({ id: subscriptionIdIn(partition) })).id;
const storedOf = (subscriptionIds: string[], sent = event()) => ({
  ref: eventRef(sent),
  event: sent,
  acceptedAtMs: time.nowMs,
  subscriptionIds,
});
/** What the first job of a delivery of `stored` is to be for BullMQ. */
const jobOf = ({ ref }: ReturnType<typeof storedOf>, subscriptionId: string) => ({
  deliveryId: deliveryId(ref, subscriptionId),
  generation: 0,
  subscriptionId,
  event: ref,
});

const key = (partition: number, name: string) => `${partitionPrefix(store, partition)}:deliveries:${name}`;
const keysOf = async (partition: number) =>
  (await store.redis.keys(key(partition, '*'))).map((found) => found.slice(key(partition, '').length)).sort();
const waiting = (partition: number) => store.redis.lrange(key(partition, 'wait'), 0, -1);
const marker = (partition: number) => store.redis.zrange(key(partition, 'marker'), 0, '-1', 'WITHSCORES');

describe('a first job', () => {
  it('is what BullMQ stores, but for its stream of events, its counter and the options', async () => {
    const id = await subscribeIn(OURS);
    const stored = storedOf([id]);
    const job = jobOf(stored, id);
    await storeEvent(store, stored);
    const format = { current: () => 1, confirm: () => undefined, doubt: () => undefined };
    await createDeliveries({ ...store, format }, stored);
    await addJobs(jobQueues, THEIRS, [job]);
    expect(await keysOf(OURS)).toEqual((await keysOf(THEIRS)).filter((name) => name !== 'events' && name !== 'id'));
    // A job has no delay and no priority where it does not say so.
    const { opts, timestamp, delay, priority, ...rest } = await store.redis.hgetall(key(THEIRS, job.deliveryId));
    expect([opts, timestamp, delay, priority]).toEqual([expect.any(String), expect.any(String), '0', '0']);
    expect(await store.redis.hgetall(key(OURS, job.deliveryId))).toEqual({ ...rest, timestamp: String(time.nowMs) });
    expect(await jobQueues.all[OURS]?.getJob(job.deliveryId)).toMatchObject({ name: id, opts: {} });
    expect(await waiting(OURS)).toEqual(await waiting(THEIRS));
    expect(await marker(OURS)).toEqual(await marker(THEIRS));
  });
  it('replaces the failed job of an expired delivery with the same id, which is still kept', async () => {
    const id = await subscribeIn(OURS);
    const stored = storedOf([id]);
    const { deliveryId: jobId } = jobOf(stored, id);
    await store.redis.hset(key(OURS, jobId), { name: id, timestamp: 1, failedReason: 'timeout' });
    await store.redis.zadd(key(OURS, 'failed'), 1, jobId);
    await storeEvent(store, stored);
    await createDeliveries(store, stored);
    expect(await waiting(OURS)).toEqual([jobId]);
    expect(await store.redis.hgetall(key(OURS, jobId))).toEqual({ name: id, timestamp: String(time.nowMs) });
    expect(await store.redis.exists(key(OURS, 'failed'))).toBe(0);
  });
  it('has no data since stored format 2, and BullMQ still reads it', async () => {
    const id = await subscribeIn(OURS);
    const [made] = await deliver([id]);
    const fields = { name: id, timestamp: String(time.nowMs) };
    expect(await store.redis.hgetall(key(OURS, made!.deliveryId))).toEqual(fields);
    const [found] = (await jobQueues.all[OURS]?.getJobs(['waiting'])) ?? [];
    expect(found).toMatchObject({ id: made!.deliveryId, name: id, data: {}, timestamp: time.nowMs });
  });
  it('waits in the order of BullMQ', async () => {
    const id = await subscribeIn(OURS);
    for (const stored of [storedOf([id]), storedOf([id])]) {
      await storeEvent(store, stored);
      await createDeliveries(store, stored);
      await addJobs(jobQueues, THEIRS, [jobOf(stored, id)]);
    }
    expect(await waiting(OURS)).toHaveLength(2);
    expect(await waiting(OURS)).toEqual(await waiting(THEIRS));
  });
  it('is added in each partition and wakes the workers of each', async () => {
    const ids = [await subscribeIn(OURS), await subscribeIn(THEIRS)];
    const stored = storedOf(ids);
    await storeEvent(store, stored, { withDeliveries: true });
    for (const [partition, id] of ids.entries()) {
      expect(await waiting(partition)).toEqual([deliveryId(stored.ref, id)]);
      expect(await marker(partition)).toEqual(['0', '0']);
      expect(await jobQueues.all[partition]?.getJob(deliveryId(stored.ref, id))).toMatchObject({ name: id });
    }
  });
  it('is added in the other partitions if the queue of one is broken', async () => {
    const ids = [await subscribeIn(OURS), await subscribeIn(THEIRS)];
    const stored = storedOf(ids);
    await store.redis.set(key(OURS, 'wait'), 'no list');
    await expect(storeEvent(store, stored, { withDeliveries: true })).rejects.toThrow(/^WRONGTYPE /);
    expect(await waiting(THEIRS)).toEqual([deliveryId(stored.ref, ids[1]!)]);
  });
  it('is left as it is by a repeat', async () => {
    const id = await subscribeIn(OURS);
    const stored = storedOf([id]);
    const job = jobOf(stored, id);
    await storeEvent(store, stored);
    await createDeliveries(store, stored);
    const before = await store.redis.hgetall(key(OURS, job.deliveryId));
    time.nowMs += 1;
    expect(await createDeliveries(store, stored)).toMatchObject([{ state: 'pending' }]);
    expect(await store.redis.hgetall(key(OURS, job.deliveryId))).toEqual(before);
    expect(await waiting(OURS)).toEqual([job.deliveryId]);
  });
  it('is added again by a repeat if it is lost', async () => {
    const id = await subscribeIn(OURS);
    const stored = storedOf([id]);
    const job = jobOf(stored, id);
    await storeEvent(store, stored);
    await createDeliveries(store, stored);
    await jobQueues.all[OURS]!.remove(job.deliveryId);
    expect(await waiting(OURS)).toEqual([]);
    await createDeliveries(store, stored);
    expect(await waiting(OURS)).toEqual([job.deliveryId]);
  });
});
