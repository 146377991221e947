/**
 * Workers that die, are suspended, or only wait for Redis: who has their jobs then, and what they may still do with
 * them.
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Claim, Consumer, type ConsumerOptions, type JobOutcome, type JobQueues } from '@posthorn/queue';
import { type FoundJob, finishJob, putBackLost, type Store, takeJobs, watchWorkers } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import type { Cluster, Redis } from 'ioredis';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { sendTwice } from '../../store/src/test-send-twice.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import { jobScripts } from './consume.ts';
import { openTestQueue, testJob } from './test-queue.ts';

let redis: Redis | Cluster;
let store: Store;
let prefixes: string[];
let jobQueues: JobQueues;
let close: () => Promise<void>;
let consumers: Consumer<FoundJob>[];
let errors: string[];

beforeEach(async () => {
  consumers = [];
  const queue = await openTestQueue(2);
  ({ store, redis, prefixes, jobQueues, errors } = queue);
  close = async () => {
    for (const consumer of consumers) await consumer.stop(5_000);
    await queue.close();
  };
});
afterEach(() => close());

const add = (...ids: string[]) => addJobs(jobQueues, 0, ids.map(testJob));
const key = (name: string) => `${prefixes[0]}:deliveries:${name}`;
const waiting = () => redis.lrange(key('wait'), 0, -1);

/** Takes jobs as a worker does, without a consumer: it renews nothing by itself. */
async function takeAs(owner: string, limit: number): Promise<void> {
  await takeFrom(store, { partition: 0, token: `${owner}:0`, limit }, { lockMs: 30_000, nowMs: Date.now() });
}
const OTHERS = { owner: undefined, nextOwner: '', checkMs: 60_000, maxChecks: 4, limit: 100, goesOn: false };
/** Renews the lease of an owner; if it has none, begins one of the same name. */
const renewAs = async (owner: string, nextOwner = owner) =>
  (await watchWorkers(store, 0, { ...OTHERS, owner, nextOwner, checkMs: 0 })).state;
/** Lets the time between two checks pass, and checks. */
async function check(limit = 100) {
  await redis.del(`${prefixes[0]}:working_checked`);
  return await watchWorkers(store, 0, { ...OTHERS, limit });
}
async function checkTimes(times: number): Promise<number> {
  let putBack = 0;
  for (let i = 0; i < times; i++) putBack += (await check()).putBack;
  return putBack;
}

interface TakenByTest {
  id: string;
  claim: Claim;
  end: (outcome: JobOutcome) => void;
}
/**
 * Starts a consumer whose jobs end when the test says so. `skip` moves its own clock on, as the time does in which it
 * is suspended.
 */
async function startConsumer(renewMs = 60_000, options: Partial<ConsumerOptions<FoundJob>> = {}) {
  const taken: TakenByTest[] = [];
  const watches: Parameters<typeof watchWorkers>[2][] = [];
  let takenOver = 0;
  let putBack = 0;
  let skippedMs = 0;
  let watchMs = 0;
  const consumer = new Consumer<FoundJob>({
    redis,
    partitionPrefixes: prefixes,
    concurrency: 10,
    ...jobScripts(store),
    async watch(partition, watch) {
      watches.push(watch);
      const watched = await watchWorkers(store, partition, watch);
      skippedMs += watchMs;
      return watched;
    },
    onTakenOver(jobs) {
      takenOver += jobs;
    },
    onPutBack(jobs) {
      putBack += jobs;
    },
    handle({ id }, _end, claim) {
      const { promise, resolve } = Promise.withResolvers<JobOutcome>();
      taken.push({ id, claim, end: resolve });
      return promise;
    },
    giveUp() {
      for (const { end } of taken) end({ kind: 'snoozed', untilMs: 0 });
    },
    onError: ({ message }) => errors.push(message),
    timings: { renewMs, askLostMs: 20 },
    clocks: [() => performance.now() + skippedMs, Date.now],
    ...options,
  });
  consumers.push(consumer);
  await consumer.start();
  return {
    taken,
    watches,
    takenOver: () => takenOver,
    putBack: () => putBack,
    skip(ms: number) {
      skippedMs += ms;
    },
    /** Each renewal and each check takes so much longer, by its own clock. */
    slowDown(ms: number) {
      watchMs = ms;
    },
    /** It takes no more jobs: in truth, a suspended process does nothing at all. */
    pause: () => consumer.pause(),
    resume: () => consumer.resume(),
  };
}

describe('the jobs of a worker that does not renew its lease', () => {
  it('are put back in their order, ahead of the others, at the fourth check', async () => {
    await add('a', 'b', 'c', 'later');
    expect(await renewAs('dead')).toBe('lost');
    await takeAs('dead', 3);
    expect(await checkTimes(3)).toBe(0);
    expect(await redis.llen(key('active'))).toBe(3);
    await redis.del(key('marker'));
    expect(await checkTimes(1)).toBe(3);
    expect((await waiting()).reverse()).toEqual(['a', 'b', 'c', 'later']);
    expect(await redis.llen(key('active'))).toBe(0);
    expect(await redis.exists(key('a:lock'))).toBe(0);
    expect(await redis.zrange(key('marker'), 0, '-1')).toEqual(['0']);
    expect(await redis.exists(`${prefixes[0]}:working`)).toBe(0);
  });

  it('are put back at the fourth check also if their locks have expired, while nobody was there', async () => {
    await add('a', 'b');
    await renewAs('dead');
    await takeAs('dead', 2);
    await redis.del(key('a:lock'), key('b:lock'));
    expect(await checkTimes(3)).toBe(0);
    expect(await checkTimes(1)).toBe(2);
    expect((await waiting()).reverse()).toEqual(['a', 'b']);
  });

  it('stay while it renews, however many checks there are, and those of workers without a lease stay always', async () => {
    await add('a', 'b');
    await renewAs('alive');
    await takeAs('alive', 1);
    await takeAs('earlier-version', 1);
    for (let i = 0; i < 5; i++) {
      expect(await checkTimes(3)).toBe(0);
      expect(await renewAs('alive')).toBe('renewed');
    }
    expect(await redis.lrange(key('active'), 0, -1)).toEqual(['b', 'a']);
  });

  it('count one check in the time of one, however many workers check', async () => {
    await add('a');
    await renewAs('slow');
    await takeAs('slow', 1);
    await check();
    for (let i = 0; i < 10; i++) expect((await watchWorkers(store, 0, OTHERS)).putBack).toBe(0);
    expect(await renewAs('slow')).toBe('renewed');
  });

  it('count checks also after the clock of Redis was set back', async () => {
    await add('a');
    await renewAs('dead');
    await takeAs('dead', 1);
    await checkTimes(3);
    // What a clock that is set back by an hour makes of the last check.
    await redis.pexpire(`${prefixes[0]}:working_checked`, 3_660_000);
    expect((await watchWorkers(store, 0, OTHERS)).putBack).toBe(1);
  });

  it('are left to a check, or to a call that goes on: a renewal between two checks looks at no other worker', async () => {
    await add('a', 'b', 'c');
    await renewAs('dead');
    await takeAs('dead', 3);
    await checkTimes(3);
    expect(await check(1)).toMatchObject({ putBack: 1, isMore: true });
    const working = `${prefixes[0]}:working`;
    // Whoever reads this one fails.
    await redis.hset(working, 'other', 'not a number');
    const renewal = { ...OTHERS, owner: 'alive', nextOwner: 'alive' };
    expect(await watchWorkers(store, 0, renewal)).toEqual({ state: 'lost', putBack: 0, isMore: false });
    await redis.hdel(working, 'other');
    // Whoever put back the first one died, so nobody goes on.
    expect(await check()).toMatchObject({ putBack: 2, isMore: false });
    expect((await waiting()).sort()).toEqual(['a', 'b', 'c']);
  });

  it('are put back in parts; meanwhile it gets a lease only as another owner', async () => {
    await add('a', 'b', 'c');
    await renewAs('dead');
    await takeAs('dead', 3);
    await checkTimes(3);
    expect(await check(2)).toMatchObject({ putBack: 2, isMore: true });
    expect(await renewAs('dead', 'next')).toBe('lost');
    // No new check is needed for the rest.
    expect(await watchWorkers(store, 0, { ...OTHERS, goesOn: true })).toMatchObject({ putBack: 1, isMore: false });
    expect((await waiting()).sort()).toEqual(['a', 'b', 'c']);
    expect(await renewAs('next')).toBe('renewed');
    expect(await renewAs('dead', 'another')).toBe('lost');
  });
});

describe('a consumer', () => {
  it('takes over the jobs of a dead one within seconds of its start: it checks every second, and four checks are enough', async () => {
    await add('a');
    await renewAs('dead');
    await takeAs('dead', 1);
    const { taken, watches, takenOver } = await startConsumer(1_000);
    await eventually('taken over', () => taken.length === 1);
    expect(taken[0]?.id).toBe('a');
    expect(takenOver()).toBe(1);
    expect(watches[0]).toMatchObject({ checkMs: 950, maxChecks: 4 });
    taken[0]?.end({ kind: 'done' });
    await eventually('ended', async () => (await jobQueues.counts()).active === 0);
    expect(errors).toEqual([]);
  });

  it('renews while it has jobs, and leaves nothing when it has had none for a while', async () => {
    await add('a');
    const { taken, watches } = await startConsumer(1_000);
    await eventually('taken', () => taken.length === 1);
    const renewals = () => watches.filter(({ owner }) => owner !== undefined).length;
    await eventually('renewals', () => renewals() > 3 && taken[0]?.claim.isSure());
    expect(taken).toHaveLength(1);
    taken[0]?.end({ kind: 'done' });
    await eventually('nothing left', async () => (await redis.exists(`${prefixes[0]}:working`)) === 0);
    const before = renewals();
    await add('b');
    await eventually('taken', () => taken.length === 2);
    expect(renewals()).toBeGreaterThan(before);
  });

  it('that was suspended is not sure of its jobs; those that another one has stay with that one', async () => {
    await add('a', 'b');
    const first = await startConsumer();
    await eventually('taken', () => first.taken.length === 2);
    expect(first.taken.map(({ claim }) => claim.isSure())).toEqual([true, true]);
    first.pause();
    // Shorter than the shortest time in which others take over.
    first.skip(60_000 * 2.4);
    expect(first.taken[0]?.claim.isSure()).toBe(true);
    first.skip(60_000 * 0.2);
    expect(first.taken.map(({ claim }) => claim.isSure())).toEqual([false, false]);
    await eventually('put back', async () => (await check()).putBack === 2);
    const second = await startConsumer();
    await eventually('taken over', () => second.taken.length === 2);
    // What it puts back is another's now.
    for (const { end } of first.taken) end({ kind: 'snoozed', untilMs: 0 });
    await eventually('both refused', () => errors.length === 2);
    expect(errors.every((text) => /lock|Lock/.test(text))).toBe(true);
    expect(await redis.llen(key('active'))).toBe(2);
    for (const { end, claim } of second.taken) {
      expect(claim.isSure()).toBe(true);
      end({ kind: 'done' });
    }
    await eventually('ended', async () => (await jobQueues.counts()).active === 0);
    expect(await jobQueues.counts()).toMatchObject({ waiting: 0, delayed: 0 });
    expect([first.taken.length, second.taken.length]).toEqual([2, 2]);
  });

  it('that was suspended keeps its jobs if nobody took them: it asks, and is sure again', async () => {
    await add('a');
    const { taken, skip } = await startConsumer();
    await eventually('taken', () => taken.length === 1);
    // With its own check at the start, one less than four.
    await checkTimes(2);
    skip(600_000);
    const [{ claim, end }] = taken as [TakenByTest];
    expect(claim.isSure()).toBe(false);
    expect(await claim.confirm()).toBe(true);
    expect(claim.isSure()).toBe(true);
    end({ kind: 'done' });
    await eventually('ended', async () => (await jobQueues.counts()).active === 0);
    expect(errors).toEqual([]);
  });

  it('that lost its jobs is told so, also if they wait again, and takes new ones as before', async () => {
    await add('a');
    const first = await startConsumer();
    await eventually('taken', () => first.taken.length === 1);
    first.pause();
    await eventually('put back', async () => (await check()).putBack === 1);
    first.skip(600_000);
    const [{ claim, end }] = first.taken as [TakenByTest];
    expect(await claim.confirm()).toBe(false);
    expect(claim.isSure()).toBe(false);
    first.resume();
    await eventually('the job to be taken again', () => first.taken.length === 2);
    expect(first.taken[1]?.claim.isSure()).toBe(true);
    end({ kind: 'snoozed', untilMs: 0 });
    await eventually('the first claim to be refused', () => errors.length === 1);
    first.taken[1]?.end({ kind: 'done' });
    await eventually('ended', async () => (await jobQueues.counts()).active === 0);
  });

  it('that lost its jobs is told so also if the first reply is lost', async () => {
    await add('a');
    const { taken, pause, skip } = await startConsumer();
    await eventually('taken', () => taken.length === 1);
    pause();
    await eventually('put back', async () => (await check()).putBack === 1);
    skip(600_000);
    const [{ claim, end }] = taken as [TakenByTest];
    sendTwice(store, 'watchWorkers');
    expect(await claim.confirm()).toBe(false);
    end({ kind: 'snoozed', untilMs: 0 });
    await eventually('the claim to be refused', () => errors.length === 1);
  });

  it('checks nobody for a while after Redis was slow or away', async () => {
    await add('a');
    const { taken, watches, slowDown } = await startConsumer(20);
    await eventually('taken', () => taken.length === 1);
    const lock = await redis.get(key('a:lock'));
    const seen = watches.length;
    // Longer than an interval.
    slowDown(21);
    await eventually('renewals without checks', () => watches.slice(seen).some(({ checkMs }) => checkMs === 0));
    expect(await redis.get(key('a:lock'))).toBe(lock);
    taken[0]?.end({ kind: 'done' });
  });
});

describe('jobs whose reply was lost', () => {
  it('are put back, and those that the repeated request has given are not', async () => {
    await add('a', 'b', 'c', 'd');
    let isFirst = true;
    const { taken, putBack } = await startConsumer(60_000, {
      async take(takes, marked, lock) {
        if (!isFirst || takes[0]?.partition !== 0) return await takeJobs(store, takes, marked, lock);
        isFirst = false;
        // As where a connection closes before a reply: ioredis repeats the command, which takes others.
        const two = takes.map((take) => ({ ...take, limit: 2 }));
        await takeJobs(store, two, marked, lock);
        store.redis.disconnect(true);
        await new Promise((resolve) => store.redis.once('ready', resolve));
        return await takeJobs(store, two, marked, lock);
      },
    });
    await eventually('all jobs', () => taken.length === 4);
    expect(taken.map(({ id }) => id)).toEqual(['c', 'd', 'a', 'b']);
    expect(putBack()).toBe(2);
    expect(errors).toEqual([]);
  });

  it('are put back in their order, however many jobs are active', async () => {
    const ids = Array.from({ length: 1_201 }, (_, i) => `j${i}`);
    await add(...ids);
    await takeAs('living', 600);
    await takeAs('lost', 601);
    const [expired, known] = ['j0', 'j1200'];
    await redis.del(key(`${expired}:lock`));
    expect(await putBackLost(store, 0, ['lost:0'], [known])).toBe(600);
    expect((await waiting()).reverse()).toEqual(ids.slice(600, 1_200));
    expect((await redis.lrange(key('active'), 0, -1)).reverse()).toEqual([...ids.slice(0, 600), known]);
  });

  it('are put back where the end of a job was repeated, and took another one each time', async () => {
    await add('a', 'b', 'c');
    let isFirst = true;
    const { taken, putBack } = await startConsumer(60_000, {
      concurrency: 1,
      async finish(partition, lock) {
        // As where successes are recorded together and one of them fails: each is recorded alone then.
        if (isFirst) await finishJob(store, partition, lock);
        isFirst = false;
        return await finishJob(store, partition, lock);
      },
    });
    for (const count of [1, 2, 3]) {
      await eventually('a job', () => taken.length === count);
      taken.at(-1)?.end({ kind: 'done' });
    }
    expect(taken.map(({ id }) => id)).toEqual(['a', 'c', 'b']);
    expect(putBack()).toBe(1);
    expect(errors).toEqual(['Could not end job a: JobNotExist']);
  });
});
