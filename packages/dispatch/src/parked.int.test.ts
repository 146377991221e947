/** Deliveries that are parked where their jobs would be taken, and taken where another one of their address ends. */
import { describe, expect, it } from '@jest/globals';
import {
  type DeliveryJob,
  deliveryIdPrefix,
  type Event,
  eventRef,
  jointRefOf,
  type NextJob,
  partitionOf,
  RETRY_PRIORITY,
} from '@posthorn/core';
import {
  addressesToRelease,
  beginAttempt,
  changeSubscription,
  decodeEvent,
  deliveryOfJob,
  type FoundJob,
  laneLength,
  loadEvent,
  parkJob,
  type Room,
  releaseDeliveries,
  rescueJobs,
  storeEvent,
  takeJobs,
} from '@posthorn/store';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { attempt, begin, event, loadOne, park, store, subscribe, time } from '../../store/src/test-deliveries.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import {
  jobQueues,
  lock,
  make,
  neighbour,
  observedStore,
  partition,
  subscribeElsewhere,
  subscriptionId,
  succeed,
  take,
} from './test-jobs.ts';

/** What a worker says of its addresses, and of which ones it was told. */
function workerWith(room: Partial<Room>) {
  const told: string[] = [];
  const worker = {
    knownEvent: () => undefined,
    room: () => ({ perAddress: 10, busy: '', dueBeforeMs: 0, ...room }),
    parked: (ids: readonly string[]) => told.push(...ids),
  };
  return { worker, told };
}
const idOf = (taken: NextJob<FoundJob> | undefined) => (taken && 'job' in taken ? taken.job.id : taken);
const idsOf = ({ parkedJobs }: { parkedJobs: readonly { id: string }[] }) => parkedJobs.map(({ id }) => id);
const parked = (id = subscriptionId) => laneLength(store, 'parked', id);
const queueKey = (name: string) => `${store.prefix}:{${partition}}:deliveries:${name}`;
const NONE_DUE = { dueAtMs: undefined };

/** Takes up to `limit` jobs. */
async function takeSome(limit: number, room: Partial<Room>, from = partition) {
  const { worker, told } = workerWith(room);
  const taken = await takeFrom(store, { partition: from, token: 't', limit }, { ...lock('t'), worker });
  const jobs = taken.flatMap((one) => ('job' in one ? [deliveryOfJob(one.job)!] : []));
  return { taken: taken.map(idOf), jobs, told };
}

describe('deliveries that have no slot', () => {
  it('are parked, oldest first, once as many of their address were taken as have room', async () => {
    const ids = [await make(), await make(), await make(), await make()];
    const { taken, told } = await takeSome(9, { busy: `${subscriptionId} 1` });
    expect(taken).toEqual([ids[0], NONE_DUE]);
    expect(told).toEqual([subscriptionId]);
    expect(await store.redis.zrange(`${store.prefix}:{${partition}}:parked:${subscriptionId}`, 0, '-1')).toEqual(
      ids.slice(1).sort(),
    );
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([subscriptionId]);
    expect(await jobQueues.counts()).toEqual({ waiting: 0, active: 1, delayed: 0, failed: 0 });
    for (const id of ids.slice(1)) expect(await store.redis.exists(queueKey(id), queueKey(`${id}:lock`))).toBe(0);
  });

  it('leave the jobs of other addresses to be taken', async () => {
    await make();
    const other = await make(undefined, await neighbour());
    await make();
    const { taken } = await takeSome(2, { busy: `${subscriptionId} 0` });
    expect(taken).toEqual([other, NONE_DUE]);
    expect(await parked()).toBe(2);
    expect(await store.redis.lrange(queueKey('active'), 0, -1)).toEqual([other]);
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

  it('wait behind first attempts of other addresses after their release from the overdue lane', async () => {
    await make();
    await takeSome(9, { perAddress: 0, dueBeforeMs: time.nowMs + 1 });
    expect(await releaseDeliveries(store, 'overdue', subscriptionId, 1, time.nowMs)).toBe(1);
    const other = await make(undefined, await neighbour());
    expect((await takeSome(1, {})).taken).toEqual([other]);
  });

  it('are overdue if they are late and one of their address that the same script parks before is overdue', async () => {
    const other = await neighbour();
    const retry = async (lateMs: number, to = subscriptionId) => {
      const id = await make(undefined, to);
      await attempt(id, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs - lateMs });
    };
    await retry(2_000);
    await retry(61_000);
    await retry(2_000);
    await retry(2_000, other);
    await takeSome(9, { perAddress: 0 });
    const overdue = (id: string) => laneLength(store, 'overdue', id);
    expect([await parked(), await overdue(subscriptionId)]).toEqual([1, 2]);
    expect([await parked(other), await overdue(other)]).toEqual([1, 0]);
  });

  it('have their job taken if it is not theirs any more: the worker ends it', async () => {
    const id = await make();
    await store.redis.hset(`${store.prefix}:{${partition}}:delivery:${id}`, 'g', 3);
    expect((await takeSome(1, { perAddress: 0 })).taken).toEqual([id]);
    expect(await parked()).toBe(0);
  });

  it('are parked by the end of another job, which leaves its place to the next one', async () => {
    const [first, second] = [await make(), await make(), await make()];
    const job = await take('one');
    const { worker, told } = workerWith({ busy: `${subscriptionId} 0` });
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
    const ended = await succeed(job, 'one', 'two', { laneToken: 'two', parkedFirst: 1 });
    expect(ended).toMatchObject({ parked: 0, next: undefined, parkedJobs: [{ id: `${id}.1` }] });
    const next = deliveryOfJob(ended.parkedJobs[0]!);
    expect(next).toMatchObject({ deliveryId: id, generation: 1, subscriptionId });
    expect(await begin(next!)).toMatchObject({ kind: 'attempt', attemptNumber: 1, url: 'https://example.com/' });
    expect(await store.redis.get(queueKey(`${id}.1:lock`))).toBe('two');
    expect(await store.redis.lrange(queueKey('active'), 0, -1)).toEqual([`${id}.1`]);
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([]);
    // It ends like any other.
    expect(await succeed(next!, 'two')).toMatchObject({ kind: 'recorded', code: 0 });
    expect(await loadOne(id)).toMatchObject({ status: 'succeeded' });
  });

  it('are taken if the queue has no other job, unless they come first', async () => {
    for (let i = 0; i < 3; i++) await make();
    const [job] = (await takeSome(9, { perAddress: 1 })).jobs;
    const other = await make(undefined, await neighbour());
    const { worker } = workerWith({ busy: `${subscriptionId} 0` });
    const first = await succeed(job!, 't', 'two', { worker, laneToken: 'two' });
    expect([idOf(first.next), idsOf(first), first.parked]).toEqual([other, [], 2]);
    await releaseDeliveries(store, 'parked', subscriptionId, 1, time.nowMs);
    const again = await take('t');
    const last = await succeed(again, 't', 'three', { worker, laneToken: 'three' });
    expect([idOf(last.next), idsOf(last), last.parked]).toEqual([NONE_DUE, [expect.stringMatching(/\.1$/)], 0]);
  });

  it('are taken up to a number of them, so that an address gets all of its slots without the queue', async () => {
    for (let i = 0; i < 5; i++) await make();
    const [job] = (await takeSome(9, { perAddress: 1 })).jobs;
    const ended = await succeed(job!, 't', undefined, { laneToken: 'two', parkedFirst: 3 });
    expect([idsOf(ended).length, ended.parked]).toEqual([3, 1]);
    for (const one of ended.parkedJobs) expect(await store.redis.get(queueKey(`${one.id}:lock`))).toBe('two');
    expect((await jobQueues.counts()).active).toBe(3);
    const more = await succeed(deliveryOfJob(ended.parkedJobs[0]!)!, 'two', undefined, {
      laneToken: 'three',
      parkedFirst: 3,
    });
    expect([idsOf(more).length, more.parked]).toEqual([1, 0]);
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
      expect((await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 })).parkedJobs).toEqual([]);
      expect(await parked()).toBeGreaterThan(0);
      await changeSubscription(store, subscriptionId, (now) => ({ ...now, status: 'active' as const }));
    }
  });

  it('are not taken where operators limit how many jobs may be active: others would never have a turn', async () => {
    await make();
    const job = await take('one');
    await make();
    await takeSome(9, { perAddress: 0 });
    const other = await make(undefined, await neighbour());
    await store.redis.hset(queueKey('meta'), 'concurrency', 1);
    const ended = await succeed(job, 'one', 'two', { laneToken: 'two', parkedFirst: 1 });
    expect([idOf(ended.next), await parked()]).toEqual([other, 1]);
  });

  it('are parked with the end of a job that found no slot, which takes the next one: one script for those of a turn', async () => {
    const ids = [await make(), await make(), await make()];
    const { jobs } = await takeSome(2, {});
    const ended = await Promise.all(
      jobs.map((job) => parkJob(store, job, { ...lock('next'), jobId: job.deliveryId, token: 't' })),
    );
    expect(ended.map(({ lane, code }) => [lane, code])).toEqual([
      ['parked', 0],
      ['parked', 0],
    ]);
    expect(ended.map(({ next }) => idOf(next))).toEqual([ids[2], NONE_DUE]);
    expect(await parked()).toBe(2);
    expect(await jobQueues.counts()).toEqual({ waiting: 0, active: 1, delayed: 0, failed: 0 });
  });

  it('are not parked by a worker that has lost its job: another one may be making the attempt', async () => {
    await make();
    const job = await take('other');
    const ended = await parkJob(store, job, { ...lock(undefined), jobId: job.deliveryId, token: 'mine' });
    expect(ended).toEqual({ lane: 'superseded', code: -6, next: undefined });
    expect([await parked(), (await jobQueues.counts()).active]).toEqual([0, 1]);
  });

  it('are passed over if they have ended meanwhile', async () => {
    await make();
    const job = await take('one');
    // Both are of the same millisecond, and in the order of their ids.
    const [gone, last] = [await make(), await make()].sort();
    await takeSome(9, { perAddress: 0 });
    await store.redis.del(`${store.prefix}:{${partition}}:delivery:${gone}`);
    const ended = await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 });
    expect([idsOf(ended), await parked()]).toEqual([[`${last}.1`], 0]);
  });

  it('wait behind first attempts where they come back, if they are retries', async () => {
    await make();
    const job = await take('one');
    const id = await make();
    await takeSome(9, { perAddress: 0 });
    await store.redis.hset(`${store.prefix}:{${partition}}:delivery:${id}`, 'st', 1);
    expect((await loadOne(id)).status).toBe('waiting_for_retry');
    await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 });
    expect(await store.redis.hget(queueKey(`${id}.1`), 'priority')).toBe(String(RETRY_PRIORITY));
  });

  it('wake another worker for retries that became due where one of them is taken', async () => {
    await make();
    const job = await take('one');
    const id = await make();
    await takeSome(9, { perAddress: 0 });
    await addJobs(jobQueues, partition, [{ ...job, deliveryId: 'r1', delayMs: 1_000 }]);
    await store.redis.del(queueKey('marker'));
    time.nowMs = Date.now() + 60_000;
    expect(idsOf(await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 }))).toEqual([`${id}.1`]);
    expect(await store.redis.zrange(queueKey('marker'), 0, '-1')).toEqual(['0']);
  });

  it('are taken one for each that ends, and each of the queue has the room that is left', async () => {
    const other = await neighbour();
    for (let i = 0; i < 3; i++) await make();
    for (let i = 0; i < 2; i++) await make(undefined, other);
    const jobs = (await takeSome(5, {})).jobs;
    const waiting = await make();
    await takeSome(9, { perAddress: 0 });
    for (let i = 0; i < 3; i++) await make(undefined, other);
    const { worker, told } = workerWith({ busy: `${subscriptionId} 0 ${other} 0` });
    const ended = await Promise.all(
      jobs.map((job) => succeed(job, 't', 'n', { worker, laneToken: 'n', parkedFirst: 1 })),
    );
    // The parked one, nothing more of the address, and two of the other one: as many as have ended.
    const addresses = ended.map(({ next, parkedJobs }) =>
      [...(next && 'job' in next ? [next.job] : []), ...parkedJobs].map((job) => deliveryOfJob(job)?.subscriptionId),
    );
    expect(idsOf(ended[0]!)).toEqual([`${waiting}.1`]);
    expect(addresses).toEqual([[subscriptionId], [], [], [other], [other]]);
    expect(told).toEqual([other]);
    expect(await parked(other)).toBe(1);
  });

  it('are not given another job while they are parked, although theirs is gone', async () => {
    const id = await make();
    await takeSome(9, { perAddress: 0 });
    const range = { beforeMs: time.nowMs, maxLookedAt: 10, maxRead: 10 };
    const rescue = async () => (await rescueJobs(store, partition, 'pending', range, time.nowMs)).rescued;
    expect(await rescue()).toBe(0);
    await store.redis.zrem(`${store.prefix}:{${partition}}:parked:${subscriptionId}`, id);
    expect(await rescue()).toBe(1);
  });

  /** An event of the same partition. */
  function eventHere(): Event {
    for (;;) {
      const sent = event();
      if (partitionOf(sent.id, store.partitions) === partition) return sent;
    }
  }
  /** Makes a delivery that is one record with its event, and its job. */
  async function makeJoint(): Promise<string> {
    const sent = eventHere();
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: [subscriptionId] };
    const made = await storeEvent(store, stored, { withDeliveries: true });
    const [{ deliveryId = '' } = {}] = 'created' in made ? made.created : [];
    return deliveryId;
  }

  it('are parked and taken alike if they are one record with their event', async () => {
    const ids = [await makeJoint(), await makeJoint()];
    const { taken, jobs } = await takeSome(9, { perAddress: 1 });
    expect(taken).toEqual([ids[0], NONE_DUE]);
    expect(jobs[0]!.event).toBe(jointRefOf(ids[0]!));
    const ended = await succeed(jobs[0]!, 't', undefined, { laneToken: 'two', parkedFirst: 1 });
    expect(idsOf(ended)).toEqual([`${ids[1]}.1`]);
    expect(ended.parkedJobs[0]?.delivery?.[1]).toBe('1');
    const next = deliveryOfJob(ended.parkedJobs[0]!);
    expect(await begin(next!)).toMatchObject({ kind: 'attempt', event: jointRefOf(ids[1]!) });
    expect(await store.redis.hget(queueKey(`${ids[1]}.1`), 'data')).toBe(
      JSON.stringify({ event_id: jointRefOf(ids[1]!) }),
    );
    expect(await succeed(next!, 'two')).toMatchObject({ kind: 'recorded', code: 0 });
  });

  it.each([
    ['a record of their own', () => make(eventHere())],
    ['one record with their event', makeJoint],
  ])('come back with all that their attempt needs each time that they are parked, in %s', async (_, makeOne) => {
    await makeOne();
    await makeOne();
    const { jobs } = await takeSome(9, {});
    const id = await makeOne();
    await takeSome(9, { perAddress: 0 });
    for (const [i, job] of jobs.entries()) {
      const token = `t${i}`;
      const { parkedJobs } = await succeed(job, 't', undefined, { laneToken: token, parkedFirst: 1 });
      const [found] = parkedJobs;
      expect(found?.id).toBe(`${id}.${i + 1}`);
      const next = deliveryOfJob(found!)!;
      expect(beginAttempt(store, next, time.nowMs, 0, found)).toEqual(await begin(next));
      expect(decodeEvent(next.event, found!.event!)).toEqual(await loadEvent(store, next.event));
      await parkJob(store, next, { ...lock(undefined), jobId: found!.id, token });
    }
  });

  it('come back with their event of another partition', async () => {
    await make();
    const job = await take('one');
    for (let i = 0; i < 2; i++) {
      let sent = event();
      while (partitionOf(sent.id, store.partitions) === partition) sent = event();
      await make(sent);
    }
    await takeSome(9, { perAddress: 0 });
    const { parkedJobs } = await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 });
    expect(parkedJobs).toMatchObject([{ event: expect.any(String) }]);
    await releaseDeliveries(store, 'parked', subscriptionId, 1, time.nowMs);
    const [taken] = await takeFrom(store, { partition, token: 't', limit: 1 }, lock('t'));
    expect(taken).toMatchObject({ job: { event: expect.any(String) } });
  });

  it('are not taken without a token for them', async () => {
    await make();
    const job = await take('one');
    await make();
    await takeSome(9, { perAddress: 0 });
    expect(await succeed(job, 'one', 'two')).toMatchObject({ parked: 1, next: NONE_DUE });
  });

  /** Deliveries of an address that is not active which one script holds, beyond what it releases. */
  const HELD_AT_ONCE = 500;
  const record = (id: string) => `${store.prefix}:{${partition}}:delivery:${id}`;
  /** A job that is taken, and deliveries in the lane, in this order. */
  async function lane(count: number) {
    await make();
    const job = await take('one');
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      time.nowMs += 1;
      ids.push(await make());
    }
    await takeSome(9, { perAddress: 0 });
    return { job, ids };
  }

  it('stay parked for maintenance from the first one on that is held', async () => {
    const { job, ids } = await lane(3);
    await store.redis.hset(record(ids[1]!), 'st', 2);
    expect((await loadOne(ids[1]!)).status).toBe('held');
    const ended = await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 3 });
    expect([idsOf(ended), ended.parked]).toEqual([[`${ids[0]}.1`], 2]);
    expect(await store.redis.zrange(`${store.prefix}:{${partition}}:parked:${subscriptionId}`, 0, '-1')).toEqual(
      ids.slice(1),
    );
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([subscriptionId]);
  });
  it('are returned with their new generation, and their address stays listed while others are parked', async () => {
    const { job } = await lane(2);
    const ended = await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 1 });
    expect(ended.parkedJobs[0]!.delivery![1]).toBe('1');
    expect(await addressesToRelease(store, partition, 'parked')).toEqual([subscriptionId]);
  });
  it('do not count for a limit of active jobs while they are being parked', async () => {
    await store.redis.hset(queueKey('meta'), 'concurrency', 1);
    await make();
    await make();
    const other = await make(undefined, await neighbour());
    expect((await takeSome(1, { busy: `${subscriptionId} 0` })).taken).toEqual([other]);
  });
  it('leave places to other addresses where operators limit how many jobs may be active, by whichever workers', async () => {
    await store.redis.hset(queueKey('meta'), 'concurrency', 4);
    const ids = [await make(), await make(), await make(), await make()];
    expect((await takeSome(1, {})).taken).toEqual([ids[0]]);
    const others = [await make(undefined, await neighbour()), await make(undefined, await neighbour())];
    const { taken, jobs, told } = await takeSome(9, {});
    expect(taken).toEqual([ids[1], ...others, NONE_DUE]);
    // A worker that is told releases one, which would be parked again.
    expect([await parked(), told]).toEqual([2, []]);
    expect(await succeed(jobs[0]!, 't')).toMatchObject({ kind: 'recorded', parked: 2 });
  });
  it('leave no places where the limit is too high to look through all active jobs', async () => {
    const id = await make();
    const active = Array.from({ length: 150 }, (_, i) => `${id.slice(0, deliveryIdPrefix('').length)}${i}`);
    await store.redis.rpush(queueKey('active'), ...active);
    await store.redis.hset(queueKey('meta'), 'concurrency', 201);
    expect((await takeSome(1, {})).taken).toEqual([id]);
    await make();
    await store.redis.hset(queueKey('meta'), 'concurrency', 200);
    expect((await takeSome(1, {})).taken).toEqual([NONE_DUE]);
  });
  it('have no place only while a job of their address is active, also after another end in the same script', async () => {
    await store.redis.hset(queueKey('meta'), 'concurrency', 2);
    const other = await neighbour();
    await make();
    await make(undefined, other);
    const { jobs } = await takeSome(2, {});
    const next = [await make(), await make(undefined, other)];
    const ended = await Promise.all(jobs.map((job) => succeed(job, 't', 'next')));
    expect(ended.map((end) => idOf(end.next))).toEqual(next);
  });
  it('are taken although the record of one can not be read, and the generation of another not be raised', async () => {
    const { job, ids } = await lane(4);
    await store.redis.del(record(ids[0]!));
    await store.redis.set(record(ids[0]!), 'of another type');
    await store.redis.hset(record(ids[1]!), 'g', 'no number');
    const { kind, code, parkedJobs } = await succeed(job, 'one', undefined, { laneToken: 'two', parkedFirst: 4 });
    expect([kind, code, parkedJobs.map(({ id }) => id)]).toEqual(['recorded', 0, [`${ids[2]}.1`, `${ids[3]}.1`]]);
  });
  it('are released together from lanes of several partitions', async () => {
    const { ids } = await lane(1);
    const other = await subscribeElsewhere();
    const home = `${store.prefix}:{${partitionOf(other, store.partitions)}}`;
    await store.redis.zadd(`${home}:parked:${other}`, 1, 'gone');
    await store.redis.sadd(`${home}:release_parked`, other);
    const all = await Promise.all(
      [subscriptionId, other, subscriptionId].map((id) => releaseDeliveries(store, 'parked', id, 1, time.nowMs)),
    );
    expect(all).toEqual([1, 0, 0]);
    expect(await store.redis.lrange(queueKey('wait'), 0, -1)).toEqual([`${ids[0]}.1`]);
    expect(await store.redis.exists(`${home}:parked:${other}`, `${home}:release_parked`)).toBe(0);
  });
  it('are released together up to the limit of each lane, and by one script up to 200 for all lanes', async () => {
    const others = [await neighbour(), await subscribeElsewhere()] as const;
    for (const to of [subscriptionId, ...others]) for (let i = 0; i < 3; i++) await make(undefined, to);
    await takeSome(9, { perAddress: 0 });
    await takeSome(9, { perAddress: 0 }, partitionOf(others[1], store.partitions));
    const { observed, scripts } = observedStore();
    const release = (limit: number, id: string) => releaseDeliveries(observed, 'parked', id, limit, time.nowMs);
    expect(await Promise.all([release(1, subscriptionId), release(2, others[0]), release(1, others[1])])).toEqual([
      1, 2, 1,
    ]);
    expect(await Promise.all([subscriptionId, ...others].map((id) => parked(id)))).toEqual([2, 1, 2]);
    expect(scripts).toEqual(['script_release']);
    expect(await Promise.all([release(100, subscriptionId), release(100, others[0]), release(1, others[1])])).toEqual([
      2, 1, 1,
    ]);
    expect(scripts).toHaveLength(3);
  });

  it('are parked although records between them are not as they must be, whose jobs are taken with an error', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) ids.push(await make());
    await store.redis.del(record(ids[1]!));
    await store.redis.set(record(ids[1]!), 'of another type');
    await store.redis.hdel(record(ids[3]!), 'c');
    const taken = await takeFrom(
      store,
      { partition, token: 't', limit: 9 },
      { ...lock('t'), worker: workerWith({ perAddress: 0 }).worker },
    );
    expect(taken).toEqual([
      { job: { id: ids[1], error: expect.objectContaining({ message: expect.stringContaining('WRONGTYPE') }) } },
      { job: { id: ids[3], error: expect.objectContaining({ message: expect.stringContaining(ids[3]!) }) } },
      { dueAtMs: undefined },
    ]);
    expect(await parked()).toBe(4);
    expect(await store.redis.lrange(queueKey('active'), 0, -1)).toEqual([ids[3], ids[1]]);
  });
  it('whose address, or whose event, is not as it must be keep no other job from being taken', async () => {
    const other = await neighbour();
    const broken = await make(undefined, other);
    const withoutEvent = await make();
    const next = await make();
    const key = `${store.prefix}:{${partition}}:subscription:${other}`;
    await store.redis.del(key);
    await store.redis.set(key, 'of another type');
    await store.redis.hdel(record(withoutEvent), 'e');
    const taken = await takeFrom(store, { partition, token: 't', limit: 9 }, lock('t'));
    expect(taken.map((one) => ('job' in one ? [one.job.id, one.job.error !== undefined] : one))).toEqual([
      [broken, true],
      [withoutEvent, true],
      [next, false],
      { dueAtMs: undefined },
    ]);
  });
  it('do not keep a partition waiting whose turn is behind them', async () => {
    const elsewhere = await subscribeElsewhere();
    for (let i = 0; i < 100; i++) await make();
    const other = await make(undefined, elsewhere);
    const { worker } = workerWith({ busy: `${subscriptionId} 0` });
    const takes = [subscriptionId, elsewhere].map((id) => ({
      partition: partitionOf(id, store.partitions),
      token: 't',
      limit: 9,
    }));
    const [, taken] = await takeJobs(store, takes, [], { ...lock('t'), worker });
    expect(Array.isArray(taken) && taken.map(idOf)).toEqual([other, NONE_DUE]);
  });
  it('are parked beside a partition that can not be read behind what it would park', async () => {
    const elsewhere = await subscribeElsewhere();
    const at = partitionOf(elsewhere, store.partitions);
    const keyOf = (home: number, name: string) => `${store.prefix}:{${home}}:deliveries:${name}`;
    const active = await make(undefined, elsewhere);
    await takeSome(1, {}, at);
    const left = await make();
    await make(undefined, elsewhere);
    await store.redis.set(keyOf(partition, 'prioritized'), 'of another type');
    const takes = [partition, at].map((home) => ({ partition: home, token: 't', limit: 9 }));
    const { worker } = workerWith({ perAddress: 0 });
    const [unread, read] = await takeJobs(store, takes, [], { ...lock('t'), worker });
    expect([unread, read]).toEqual([expect.any(Error), [NONE_DUE]]);
    expect(await parked(elsewhere)).toBe(1);
    expect(await store.redis.lrange(keyOf(at, 'active'), 0, -1)).toEqual([active]);
    // Its job has no lock, so it is put back as one of a worker that died.
    expect([await parked(), await store.redis.lrange(queueKey('active'), 0, -1)]).toEqual([0, [left]]);
  });
  it('are released once beside a lane that can not be read', async () => {
    await lane(3);
    const broken = (await subscribe()).id;
    const home = `${store.prefix}:{${partitionOf(broken, store.partitions)}}`;
    await store.redis.set(`${home}:parked:${broken}`, 'of another type');
    const release = (id: string) => releaseDeliveries(store, 'parked', id, 1, time.nowMs);
    const [released, refused] = await Promise.allSettled([release(subscriptionId), release(broken)]);
    expect(released).toMatchObject({ value: 1 });
    expect(refused).toMatchObject({ reason: { message: expect.stringContaining('WRONGTYPE') } });
    expect([await parked(), await store.redis.llen(queueKey('wait'))]).toEqual([2, 1]);
  });
  it('are held in parts if many addresses with a backlog were paused together', async () => {
    const busy = [subscriptionId, await neighbour(), await neighbour()];
    for (const id of busy) {
      for (let i = 0; i < HELD_AT_ONCE; i++) {
        // Records of another shape do for what is only to be held.
        const delivery = `dlv_${id.slice(-8)}zz${String(i).padStart(4, '0')}zzzzzzzzzzzz`;
        await store.redis.hset(record(delivery), { s: id, k: '0', st: '0', n: '0', c: String(time.nowMs), e: 'abc/s' });
        await store.redis.zadd(`${store.prefix}:{${partition}}:parked:${id}`, time.nowMs, delivery);
      }
      await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' as const }));
    }
    await Promise.all(busy.map((id) => releaseDeliveries(store, 'parked', id, 1, time.nowMs)));
    expect(await Promise.all(busy.map((id) => parked(id)))).toEqual([0, HELD_AT_ONCE - 1, HELD_AT_ONCE - 1]);
  });
  it('are counted where one script parks, takes and ends for two partitions', async () => {
    const elsewhere = await subscribeElsewhere();
    const places = [
      [partition, subscriptionId],
      [partitionOf(elsewhere, store.partitions), elsewhere],
    ] as const;
    const { worker } = workerWith({ perAddress: 0 });
    const jobs: DeliveryJob[][] = [];
    for (const [at, to] of places) {
      const fill = async (count: number) => {
        for (let i = 0; i < count; i++) {
          await make(undefined, to);
          time.nowMs += 1;
        }
      };
      await fill(2);
      const taken = await takeFrom(store, { partition: at, token: 't', limit: 2 }, lock('t'));
      jobs.push(taken.flatMap((one) => ('job' in one ? (deliveryOfJob(one.job) ?? []) : [])));
      await fill(5);
      await takeFrom(store, { partition: at, token: 't', limit: 9 }, { ...lock('t'), worker });
      await fill(3);
    }
    // The first of each takes from the queue, whose jobs are parked; the second takes four from the lane.
    const ended = await Promise.all([
      ...jobs.map(([first]) => succeed(first!, 't', 'n', { worker })),
      ...jobs.map(([, second]) => succeed(second!, 't', undefined, { worker, laneToken: 'l', parkedFirst: 4 })),
    ]);
    expect(ended.map(({ code, parked, parkedJobs }) => [code, parked, parkedJobs.length])).toEqual([
      [0, 5, 0],
      [0, 5, 0],
      [0, 4, 4],
      [0, 4, 4],
    ]);
    expect(await Promise.all(places.map(([, to]) => parked(to)))).toEqual([4, 4]);
  });
});
