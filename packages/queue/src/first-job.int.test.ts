/** That a script of the store adds the same job as BullMQ would, on a real Redis. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { EventRef } from '@posthorn/core';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { createJobQueues, FIRST_JOB_LUA } from './index.ts';
import { addJobs } from './test-add-jobs.ts';

const job = { deliveryId: 'dlv_1', generation: 0, subscriptionId: 'sub_1', event: 'evt_1/s' as EventRef };
const NOW_MS = 1_700_000_000_000;

let redis: Redis;
let ours: string;
let theirs: string;
let jobQueues: ReturnType<typeof createJobQueues>;
beforeEach(async () => {
  redis = new Redis(testRedisUrl());
  [ours, theirs] = [`${testPrefix()}:{0}`, `${testPrefix()}:{1}`];
  const onError = (error: Error) => Promise.reject(error);
  jobQueues = createJobQueues({ redis, partitionPrefixes: [ours, theirs], onError });
  await jobQueues.ready();
});
afterEach(async () => {
  await jobQueues.close();
  for (const prefix of [ours, theirs]) for (const key of await redis.keys(`${prefix}:*`)) await redis.del(key);
  await redis.quit();
});

async function addOurs(id = job.deliveryId): Promise<void> {
  const script = `local call, prefix = redis.call, KEYS[1]\n${FIRST_JOB_LUA}\naddFirstJob(unpack(ARGV))\naddToQueues()`;
  await redis.eval(script, 1, ours, id, job.subscriptionId, job.event, String(NOW_MS));
}
const keysOf = async (prefix: string) =>
  (await redis.keys(`${prefix}:*`)).map((key) => key.slice(prefix.length + ':deliveries:'.length)).sort();
const hash = (prefix: string) => redis.hgetall(`${prefix}:deliveries:${job.deliveryId}`);
const waiting = (prefix: string) => redis.lrange(`${prefix}:deliveries:wait`, 0, -1);
const marker = (prefix: string) => redis.zrange(`${prefix}:deliveries:marker`, 0, '-1', 'WITHSCORES');

describe('the script that adds first jobs', () => {
  it('stores what BullMQ stores, but for its stream of events, its counter and the options', async () => {
    await addOurs();
    await addJobs(jobQueues, 1, [job]);
    expect(await keysOf(ours)).toEqual((await keysOf(theirs)).filter((key) => key !== 'events' && key !== 'id'));
    // A job has no delay and no priority where it does not say so.
    const { opts, timestamp, delay, priority, ...rest } = await hash(theirs);
    expect([opts, timestamp, delay, priority]).toEqual([expect.any(String), expect.any(String), '0', '0']);
    expect(await hash(ours)).toEqual({ ...rest, timestamp: String(NOW_MS) });
    expect(await jobQueues.all[0]?.getJob(job.deliveryId)).toMatchObject({ name: job.subscriptionId, opts: {} });
    expect(await waiting(ours)).toEqual(await waiting(theirs));
    expect(await marker(ours)).toEqual(await marker(theirs));
  });
  it('adds jobs to the queues of several partitions and wakes the workers of each', async () => {
    const script = `local call, prefix = redis.call, KEYS[1]\n${FIRST_JOB_LUA}
    addFirstJob(ARGV[2], ARGV[3], ARGV[4], ARGV[5]) prefix = ARGV[1] addFirstJob(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
    addToQueues()`;
    await redis.eval(script, 1, ours, theirs, job.deliveryId, job.subscriptionId, job.event, NOW_MS);
    expect(await waiting(ours)).toEqual([job.deliveryId]);
    expect(await waiting(theirs)).toEqual([job.deliveryId]);
    expect(await marker(ours)).toEqual(['0', '0']);
    expect(await marker(theirs)).toEqual(['0', '0']);
    expect(await hash(theirs)).toEqual(await hash(ours));
    expect(await jobQueues.all[1]?.getJob(job.deliveryId)).toMatchObject({ name: job.subscriptionId });
  });
  it('adds jobs to the queues of the other partitions if one is broken', async () => {
    await redis.set(`${ours}:deliveries:wait`, 'no list');
    const script = `local call, prefix = redis.call, KEYS[1]\n${FIRST_JOB_LUA}
    addFirstJob(ARGV[2], ARGV[3], ARGV[4], ARGV[5]) prefix = ARGV[1] addFirstJob(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
    if addToQueues() then return 'failed' end`;
    const end = await redis.eval(script, 1, ours, theirs, job.deliveryId, job.subscriptionId, job.event, NOW_MS);
    expect(end).toBe('failed');
    expect(await waiting(theirs)).toEqual([job.deliveryId]);
  });
  it('adds jobs in the order of BullMQ', async () => {
    for (const id of ['dlv_1', 'dlv_2']) {
      await addOurs(id);
      await addJobs(jobQueues, 1, [{ ...job, deliveryId: id }]);
    }
    expect(await waiting(ours)).toEqual(await waiting(theirs));
  });
  it('stores no data if there is no event to name, and BullMQ still reads the job', async () => {
    const script = `local call, prefix = redis.call, KEYS[1]\n${FIRST_JOB_LUA}\naddFirstJob(ARGV[1], ARGV[2], false, ARGV[3])\naddToQueues()`;
    await redis.eval(script, 1, ours, job.deliveryId, job.subscriptionId, String(NOW_MS));
    expect(await hash(ours)).toEqual({ name: job.subscriptionId, timestamp: String(NOW_MS) });
    const [found] = (await jobQueues.all[0]?.getJobs(['waiting'])) ?? [];
    expect(found).toMatchObject({ id: job.deliveryId, name: job.subscriptionId, data: {}, timestamp: NOW_MS });
  });
  it('leaves a job that exists as it is', async () => {
    await addJobs(jobQueues, 0, [job]);
    const before = await hash(ours);
    await addOurs();
    expect(await hash(ours)).toEqual(before);
    expect(await waiting(ours)).toEqual([job.deliveryId]);
  });
});
