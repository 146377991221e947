/** Deliveries that are parked where their jobs would be taken, and taken where another one of their address ends. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import {
  addressesToRelease,
  changeSubscription,
  deliveryOfJob,
  laneLength,
  type NextJob,
  type Room,
  takeJobs,
} from '@posthorn/store';
import { begin, loadOne, park, store, subscribe, time } from '../../store/src/test-deliveries.ts';
import { lock, make, partition, producer, subscriptionId, succeed, take } from './test-jobs.ts';

/** What a worker says of its addresses, and of which ones it was told. */
function workerWith(room: Partial<Room>) {
  const told: string[] = [];
  const worker = {
    knownEvent: () => undefined,
    room: () => ({ perAddress: 10, room: '', dueBeforeMs: 0, ...room }),
    parked: (ids: readonly string[]) => told.push(...ids),
  };
  return { worker, told };
}
const idOf = (taken: NextJob | undefined) => (taken && 'job' in taken ? taken.job.id : taken);
const parked = (id = subscriptionId) => laneLength(store, 'parked', id);
const queueKey = (name: string) => `${store.prefix}:{${partition}}:deliveries:${name}`;
const NONE_DUE = { dueAtMs: undefined };

/** Takes up to `limit` jobs. */
async function takeSome(limit: number, room: Partial<Room>) {
  const { worker, told } = workerWith(room);
  const taken = await takeJobs(store, partition, { ...lock('t'), nextToken: 't', limit, worker });
  return { taken: taken.map(idOf), told };
}
/** Another address of the same partition. */
async function neighbour(): Promise<string> {
  for (;;) {
    const { id } = await subscribe();
    if (partitionOf(id, store.partitions) === partition) return id;
  }
}

it('are parked, oldest first, once as many of their address were taken as have room', async () => {
  const ids = [await make(), await make(), await make(), await make()];
  const { taken, told } = await takeSome(9, { room: `${subscriptionId} 1` });
  expect(taken).toEqual([ids[0], NONE_DUE]);
  expect(told).toEqual([subscriptionId]);
  expect(await store.redis.zrange(`${store.prefix}:{${partition}}:parked:${subscriptionId}`, 0, '-1')).toEqual(
    ids.slice(1).sort(),
  );
  expect(await addressesToRelease(store, partition, 'parked')).toEqual([subscriptionId]);
  expect(await producer.counts()).toEqual({ waiting: 0, active: 1, delayed: 0, failed: 0 });
  for (const id of ids.slice(1)) expect(await store.redis.exists(queueKey(id), queueKey(`${id}:lock`))).toBe(0);
});

it('leave the jobs of other addresses to be taken', async () => {
  await make();
  const other = await make(undefined, await neighbour());
  await make();
  const { taken } = await takeSome(2, { room: `${subscriptionId} 0` });
  expect(taken).toEqual([other, NONE_DUE]);
  expect(await parked()).toBe(2);
});

it('are taken up to the limit of each address where nothing else is said', async () => {
  const ids = [await make(), await make(), await make()];
  const { taken, told } = await takeSome(9, { perAddress: 2 });
  expect(taken).toEqual([ids[0], ids[1], NONE_DUE]);
  expect(told).toEqual([subscriptionId]);
});

it('are parked by one script up to 64, and the rest by the next', async () => {
  for (let i = 0; i < 70; i++) await make();
  expect((await takeSome(9, { perAddress: 0 })).taken).toEqual([]);
  expect(await parked()).toBe(64);
  // Nobody has to wait until a worker looks again.
  expect(await store.redis.zrange(queueKey('marker'), 0, '-1')).toEqual(['0']);
  expect((await takeSome(9, { perAddress: 0 })).taken).toEqual([NONE_DUE]);
  expect(await parked()).toBe(70);
});

it('are overdue if they were due before the end of an outage', async () => {
  await make();
  await takeSome(9, { perAddress: 0, dueBeforeMs: time.nowMs + 1 });
  expect([await parked(), await laneLength(store, 'overdue', subscriptionId)]).toEqual([0, 1]);
});

it('have their job taken if it is not theirs any more: the worker ends it', async () => {
  const id = await make();
  await store.redis.hset(`${store.prefix}:{${partition}}:delivery:${id}`, 'g', 3);
  expect((await takeSome(1, { perAddress: 0 })).taken).toEqual([id]);
  expect(await parked()).toBe(0);
});

it('are parked by the end of another job, which counts itself out', async () => {
  const [first, second] = [await make(), await make(), await make()];
  const job = await take('one');
  const { worker, told } = workerWith({ room: `${subscriptionId} 0` });
  const ended = await succeed(job, 'one', 'two', { worker });
  expect([job.deliveryId, idOf(ended.next)]).toEqual([first, second]);
  expect(told).toEqual([]);
  const next = 'job' in ended.next! ? deliveryOfJob(ended.next.job)! : undefined;
  // Its slot is for what is parked.
  await park({ ...next!, deliveryId: await make() });
  expect(await parked()).toBe(1);
  const last = await succeed(next!, 'two', 'three', { worker });
  expect([last.parked, idOf(last.next)]).toEqual([1, NONE_DUE]);
  expect(await parked()).toBe(2);
});

it('are taken at the end of another one of their address, before the queue, with a new generation and a locked job', async () => {
  await make();
  const job = await take('one');
  const id = await make();
  await takeSome(9, { perAddress: 0 });
  await make();
  const ended = await succeed(job, 'one', 'two', { laneToken: 'two' });
  expect(ended).toMatchObject({ parked: 0, next: { wasParked: true, job: { id: `${id}.1` } } });
  const next = 'job' in ended.next! ? deliveryOfJob(ended.next.job)! : undefined;
  expect(next).toMatchObject({ deliveryId: id, generation: 1, subscriptionId });
  expect(await begin(next!)).toMatchObject({ kind: 'attempt', attemptNumber: 1, url: 'https://example.com/' });
  expect(await store.redis.get(queueKey(`${id}.1:lock`))).toBe('two');
  expect(await store.redis.lrange(queueKey('active'), 0, -1)).toEqual([`${id}.1`]);
  expect(await addressesToRelease(store, partition, 'parked')).toEqual([]);
  // It ends like any other.
  expect(await succeed(next!, 'two')).toMatchObject({ kind: 'recorded', code: 0 });
  expect(await loadOne(id)).toMatchObject({ status: 'succeeded' });
});

it('stay parked if their address is not active, or the queue is paused; the queue is next then', async () => {
  for (const prevent of [
    () => changeSubscription(store, subscriptionId, (now) => ({ ...now, status: 'paused' as const })),
    () => store.redis.hset(queueKey('meta'), 'paused', 1),
  ]) {
    await make();
    const job = await take('one');
    await make();
    await takeSome(9, { perAddress: 0 });
    await prevent();
    expect((await succeed(job, 'one', undefined, { laneToken: 'two' })).next).toBeUndefined();
    expect(await parked()).toBeGreaterThan(0);
    await changeSubscription(store, subscriptionId, (now) => ({ ...now, status: 'active' as const }));
  }
});

it('are not taken without a token for them', async () => {
  await make();
  const job = await take('one');
  await make();
  await takeSome(9, { perAddress: 0 });
  expect(await succeed(job, 'one', 'two')).toMatchObject({ parked: 1, next: NONE_DUE });
});
