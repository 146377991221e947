/** A success, the end of its job and the taking of the next one, in one step. */
import { describe, expect, it } from '@jest/globals';
import { eventRef, partitionOf } from '@posthorn/core';
import {
  beginAttempt,
  changeSubscription,
  decodeEvent,
  deliveryOfJob,
  laneLength,
  listDeliveries,
  storeEvent,
} from '@posthorn/store';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { begin, deliver, event, loadOne, store, subscribe, time } from '../../store/src/test-deliveries.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import {
  jobQueues,
  lock,
  make,
  observedStore,
  partition,
  subscribeElsewhere,
  subscriptionId,
  succeed,
  take,
  takeAll,
  takeOne,
} from './test-jobs.ts';

describe('recordSuccess', () => {
  it('records the attempt, removes the job and returns the next one with all that its attempt needs', async () => {
    const [first, second] = [await make(), await make()];
    const job = await take('one');
    expect(job).toMatchObject({ deliveryId: first, generation: 0, subscriptionId });
    const { next, ...ended } = await succeed(job, 'one', 'two');
    expect(ended).toEqual({ kind: 'recorded', paused: false, parked: 0, code: 0, parkedJobs: [] });
    expect(await loadOne(first)).toMatchObject({ status: 'succeeded', attemptCount: 1 });
    if (!next || !('job' in next)) throw new Error('no next job');
    const nextJob = deliveryOfJob(next.job)!;
    expect(nextJob.deliveryId).toBe(second);
    // What was read in the same step begins the same attempt as what is read now.
    const begun = await begin(nextJob);
    expect(begun).toMatchObject({ kind: 'attempt', url: 'https://example.com/', attemptNumber: 1 });
    expect(beginAttempt(store, nextJob, time.nowMs, 0, next.job)).toEqual(begun);
    expect(next.job.address?.slice(0, 2)).toEqual(['active', 'https://example.com/']);
    expect(await jobQueues.counts()).toMatchObject({ waiting: 0, active: 1 });
  });

  it('returns the event with the job if it is in the same partition, short, and not known', async () => {
    let sent = event();
    while (partitionOf(sent.id, store.partitions) !== partition) sent = event();
    await make(sent);
    const taken = await takeOne('a');
    const text = ('job' in taken && taken.job.event) || '';
    expect(decodeEvent(eventRef(sent), text)?.event).toEqual(sent);
  });

  it('returns the event of another partition that the delivery names', async () => {
    const eventElsewhere = () => {
      for (;;) {
        const made = event();
        if (partitionOf(made.id, store.partitions) !== partition) return made;
      }
    };
    const sent = eventElsewhere();
    const stored = { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs, subscriptionIds: [subscriptionId] };
    await storeEvent(store, stored, { withDeliveries: true });
    const taken = await takeOne('a');
    if (!('job' in taken)) throw new Error('no job');
    expect(decodeEvent(eventRef(sent), taken.job.event ?? '')?.event).toEqual(sent);
    // One of an earlier version, or of a Cluster, does not name it: the worker reads it then.
    const made = await make(eventElsewhere());
    await store.redis.hdel(`${store.prefix}:{${partition}}:delivery:${made}`, 'p');
    const other = await takeOne('b');
    if (!('job' in other)) throw new Error('no job');
    expect(other.job).toMatchObject({ delivery: expect.any(Array) });
    expect(other.job.event).toBeUndefined();
  });

  it('leaves out an event that is known or long', async () => {
    for (const [known, dataJson] of [
      [true, '{"id":"s"}'],
      [false, `{"id":"${'x'.repeat(20_000)}"}`],
    ] as const) {
      let sent = event({ dataJson });
      while (partitionOf(sent.id, store.partitions) !== partition) sent = event({ dataJson });
      await make(sent);
      const knownEvent = known ? eventRef(sent) : undefined;
      const taken = await takeOne('a', knownEvent);
      if (!('job' in taken)) throw new Error('no job');
      expect(taken.job.event).toBeUndefined();
      expect(deliveryOfJob(taken.job)?.event).toBe(eventRef(sent));
    }
  });

  it('records what succeeds in one turn of the event loop with one script for sixteen, in any partition', async () => {
    const ids = [subscriptionId, ...(await Promise.all(Array.from({ length: 7 }, async () => (await subscribe()).id)))];
    const partitions = new Set(ids.map((id) => partitionOf(id, store.partitions)));
    expect(partitions.size).toBeGreaterThan(1);
    for (let i = 0; i < 3; i++) {
      await deliver(ids);
    }
    const jobs = await takeAll(partitions, 100);
    expect(jobs).toHaveLength(24);
    const { observed, scripts } = observedStore();
    const ended = await Promise.all(jobs.map((job) => succeed(job, 'token', undefined, {}, { by: observed })));
    expect(scripts).toEqual(['script_recordSuccesses', 'script_recordSuccesses']);
    expect(ended).toEqual(
      Array(24).fill({ kind: 'recorded', paused: false, parked: 0, code: 0, next: undefined, parkedJobs: [] }),
    );
    for (const { deliveryId } of jobs) expect(await loadOne(deliveryId)).toMatchObject({ status: 'succeeded' });
    expect(await jobQueues.counts()).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
  });

  it('lists what one script records in the order of creation, in whichever order it succeeds, in each partition', async () => {
    const elsewhere = await subscribeElsewhere();
    const startMs = time.nowMs;
    const makeAt = (ms: number, to = subscriptionId) => {
      time.nowMs = startMs + ms;
      return make(undefined, to);
    };
    const earlier = [await makeAt(100), await makeAt(500, elsewhere)];
    // The second one becomes the newest entry of its partition; the last of these is too old for an entry behind it.
    const together = [await makeAt(0), await makeAt(200), await makeAt(50), await makeAt(-2_000)];
    together.push(await makeAt(150, elsewhere), await makeAt(600, elsewhere));
    const jobs = await takeAll([partition, partitionOf(elsewhere, store.partitions)], 9);
    for (const ids of [earlier, together]) {
      await Promise.all(ids.map((id) => succeed(jobs.find(({ deliveryId }) => deliveryId === id)!, 'token')));
    }
    const listed = async (toMs?: number) => {
      const { items } = await listDeliveries(store, { status: 'succeeded', toMs }, { limit: 9 });
      return items.map(({ createdAtMs }) => createdAtMs - startMs);
    };
    expect(await listed()).toEqual([600, 500, 200, 150, 100, 50, 0, -2_000]);
    expect(await listed(startMs - 2_000)).toEqual([-2_000]);
  });

  it('records the others if one of them can not be recorded', async () => {
    for (let i = 0; i < 3; i++) await make();
    const [first, broken, last] = await takeAll([partition], 3);
    if (!first || !broken || !last) throw new Error('no jobs');
    await store.redis.set(`${store.prefix}:{${partition}}:delivery:${broken.deliveryId}`, 'not a hash');
    const ended = await Promise.allSettled([first, broken, last].map((job) => succeed(job, 'token')));
    expect(ended).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { message: expect.stringContaining('WRONGTYPE') } },
      { status: 'fulfilled', value: { kind: 'recorded', code: 0 } },
    ]);
    for (const { deliveryId } of [first, last]) expect(await loadOne(deliveryId)).toMatchObject({ attemptCount: 1 });
    expect(await jobQueues.counts()).toMatchObject({ active: 1 });
  });

  it('gives an event that several jobs have to each of them', async () => {
    const ids = [subscriptionId];
    while (ids.length < 3) {
      const { id } = await subscribe();
      if (partitionOf(id, store.partitions) === partition) ids.push(id);
    }
    let sent = event();
    while (partitionOf(sent.id, store.partitions) !== partition) sent = event();
    await deliver(ids, sent);
    const taken = await takeFrom(store, { partition, token: 'a', limit: 3 }, lock('a'));
    const texts = taken.map((one) => 'job' in one && one.job.event);
    expect(decodeEvent(eventRef(sent), texts[0] || '')?.event).toEqual(sent);
    expect(texts).toEqual([texts[0], texts[0], texts[0]]);
  });

  it('wakes another worker for retries that have become due', async () => {
    const marker = () => store.redis.zrange(`${store.prefix}:{${partition}}:deliveries:marker`, 0, '-1');
    const ids = [await make(), await make()];
    const [first, second] = await takeAll([partition], 3);
    expect([first?.deliveryId, second?.deliveryId]).toEqual(ids);
    for (const deliveryId of ['r1', 'r2']) {
      const job = { deliveryId, generation: 0, subscriptionId, event: first!.event };
      await addJobs(jobQueues, partition, [{ ...job, delayMs: 1_000 }]);
    }
    await store.redis.del(`${store.prefix}:{${partition}}:deliveries:marker`);
    time.nowMs = Date.now() + 60_000;
    // The first retry is taken next, the second one is left.
    expect((await succeed(first!, 'token', 'next')).next).toMatchObject({ job: { id: 'r1' } });
    expect(await marker()).toEqual(['0']);
  });

  it('records an attempt once, and says that its job is gone when it is repeated', async () => {
    await make();
    const job = await take('one');
    expect(await succeed(job, 'one')).toMatchObject({ kind: 'recorded', code: 0, next: undefined });
    expect(await succeed(job, 'one')).toMatchObject({ kind: 'recorded', code: -1 });
    expect((await loadOne(job.deliveryId)).attemptCount).toBe(1);
  });

  it('records the success of a worker that has lost its lock, and leaves the job to the worker that has it', async () => {
    await make();
    const job = await take('other');
    expect(await succeed(job, 'mine')).toMatchObject({ kind: 'recorded', code: -6 });
    expect(await jobQueues.counts()).toMatchObject({ active: 1 });
    expect((await loadOne(job.deliveryId)).status).toBe('succeeded');
  });

  it('ends a resume whose trial it is', async () => {
    const id = await make();
    const job = await take('one');
    await changeSubscription(store, subscriptionId, (now) => ({ ...now, status: 'paused' }));
    const key = `${store.prefix}:{${partition}}:subscription:${subscriptionId}`;
    await store.redis.hset(key, { status: 'resuming', trial: id });
    expect(await succeed(job, 'one')).toMatchObject({ kind: 'recorded', code: 0 });
    expect(await store.redis.hmget(key, 'status', 'resume_outcome')).toEqual(['active', 'succeeded']);
    expect(await laneLength(store, 'held', subscriptionId)).toBe(0);
  });
});
