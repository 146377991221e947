/**
 * The order in which jobs of a real BullMQ are handed out, and that BullMQ and the scripts of packages/store agree on
 * its keys.
 */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DAY_MS, HOUR_MS, type NextJob, StorageUnavailable, type Take } from '@posthorn/core';
import { Consumer, type ConsumerOptions, type JobOutcome, type JobQueues } from '@posthorn/queue';
import { type FoundJob, finishJob, lookForJobs, type Store, takeJobs } from '@posthorn/store';
import { eventually } from '@posthorn/testing';
import { ErrorCode, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { createEndings } from '../../queue/src/endings.ts';
import { addJobs } from '../../queue/src/test-add-jobs.ts';
import { takeFrom } from '../../store/src/test-take.ts';
import { jobScripts } from './consume.ts';
import { openTestQueue, testJob } from './test-queue.ts';

let redis: Redis | Cluster;
let store: Store;
let prefixes: string[];
let close: () => Promise<void>;
let jobQueues: JobQueues;
let consumer: Consumer<FoundJob>;
/** The jobs in the order in which they were handed out. */
let taken: string[];
let handle: (id: string) => Promise<JobOutcome>;
let errors: string[];
let onError: (error: Error) => void;

const add = (...ids: string[]) => addJobs(jobQueues, 0, ids.map(testJob));
async function takeOne({
  nextToken,
  ...lock
}: {
  nextToken: string;
  lockMs: number;
  nowMs: number;
}): Promise<NextJob<FoundJob>> {
  const [taken] = await takeFrom(store, { partition: 0, token: nextToken, limit: 1 }, lock);
  return taken!;
}
/** One of BullMQ's keys of a partition. */
const key = (name: string, partition = 0) => `${prefixes[partition]}:deliveries:${name}`;

function optionsOf(concurrency: number) {
  return {
    redis,
    partitionPrefixes: prefixes,
    concurrency,
    ...jobScripts(store),
    onTakenOver: () => undefined,
    onPutBack: () => undefined,
    giveUp: () => undefined,
    onError,
  };
}

function newConsumer(concurrency: number, options: Partial<ConsumerOptions<FoundJob>> = {}): Consumer<FoundJob> {
  return new Consumer<FoundJob>({
    ...optionsOf(concurrency),
    async handle({ id }) {
      taken.push(id);
      return await handle(id);
    },
    ...options,
  });
}

beforeEach(async () => {
  const queue = await openTestQueue(3);
  ({ store, redis, prefixes, jobQueues, errors, onError, close } = queue);
  taken = [];
  consumer = newConsumer(1);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await consumer.stop(5_000);
  await close();
});

/** How often a job has been handed out, this time included. */
const timesTaken = (id: string) => taken.filter((takenId) => takenId === id).length;

/**
 * Fails an attempt so that its retry is due after 1 ms. BullMQ orders retries by when they are due, in whole
 * milliseconds, so the clock must move on between two failures: only then is the first to fail also the first to be
 * due.
 */
async function failAttempt(): Promise<JobOutcome> {
  const startedAtMs = Date.now();
  await eventually('the clock to move on', () => Date.now() > startedAtMs + 1);
  return { kind: 'retry', endedAtMs: Date.now(), delayMs: 1, reason: 'attempt failed' };
}

/**
 * Runs four jobs, r1 to r4, whose first attempts fail in this order. The retries of the first three are due while r4 is
 * in flight; then `meanwhile` runs. `later` decides about every other attempt.
 */
async function failFour(
  meanwhile: () => Promise<void>,
  later: (id: string) => Promise<JobOutcome> = async () => ({ kind: 'done' }),
): Promise<void> {
  handle = async (id) => {
    if (!id.startsWith('r') || timesTaken(id) > 1) return await later(id);
    if (id === 'r4') await meanwhile();
    return await failAttempt();
  };
  await add('r1', 'r2', 'r3', 'r4');
  await consumer.start();
}

it('names the job in the error of a handler, which is made again later', async () => {
  handle = () => Promise.reject(new Error('No event type has the stored number 99'));
  await add('broken');
  await consumer.start();
  await eventually('the job to be put back', async () => (await jobQueues.counts()).delayed === 1);
  expect(errors).toEqual(['Could not handle job broken: No event type has the stored number 99']);
});

describe('several partitions taken from at once', () => {
  const takesOf = (...partitions: number[]) => partitions.map((partition) => ({ partition, token: 'a', limit: 2 }));
  const lock = { lockMs: 30_000, nowMs: Date.now() };

  it('give their jobs, those of `marked` only if they have markers, which are removed', async () => {
    for (const partition of [0, 1, 2]) await addJobs(jobQueues, partition, [testJob(`p${partition}`)]);
    await redis.del(key('marker', 2));
    const none = { dueAtMs: undefined };
    expect(await takeJobs(store, takesOf(0), takesOf(1, 2), lock)).toEqual([
      [{ job: { id: 'p0' } }, none],
      [{ job: { id: 'p1' } }, none],
      [],
    ]);
    expect(await redis.exists(key('marker', 1))).toBe(0);
    expect(await redis.llen(key('wait', 2))).toBe(1);
  });
  it('have a marker again if jobs are left', async () => {
    await addJobs(jobQueues, 1, [testJob('a'), testJob('b'), testJob('c')]);
    await takeJobs(store, takesOf(0), takesOf(1), lock);
    expect(await redis.exists(key('marker', 1))).toBe(1);
  });
  it('give retries that have become due, and those that are in the queue already', async () => {
    await addJobs(jobQueues, 1, [{ ...testJob('d1'), delayMs: 1_000, isRetry: true }]);
    await addJobs(jobQueues, 2, [{ ...testJob('p1'), isRetry: true }]);
    const later = { ...lock, nowMs: Date.now() + 60_000 };
    const none = { dueAtMs: undefined };
    expect(await takeJobs(store, takesOf(0, 1, 2), [], later)).toEqual([
      [none],
      [{ job: { id: 'd1' } }, none],
      [{ job: { id: 'p1' } }, none],
    ]);
    expect(await takeJobs(store, takesOf(0, 1, 2), [], later)).toEqual([[none], [none], [none]]);
  });
  it('promote up to a thousand due retries together', async () => {
    for (const partition of [0, 1]) {
      const due = Array.from({ length: 600 }, (_, i) => ({ ...testJob(`r${i}`), delayMs: 1_000, isRetry: true }));
      await addJobs(jobQueues, partition, due);
    }
    const later = { ...lock, nowMs: Date.now() + 60_000 };
    const delayed = async () => Promise.all([0, 1].map((partition) => redis.zcard(key('delayed', partition))));
    await takeJobs(store, takesOf(0, 1), [], later);
    expect(await delayed()).toEqual([0, 200]);
    await takeJobs(store, takesOf(0, 1), [], later);
    expect(await delayed()).toEqual([0, 0]);
  });
  it('do not wait for one that can not be read', async () => {
    for (const partition of [0, 2]) await addJobs(jobQueues, partition, [testJob(`p${partition}`)]);
    await redis.set(key('wait', 1), 'no list');
    const [first, second, third] = await takeJobs(store, takesOf(0, 1, 2), [], lock);
    expect([first, third]).toEqual([
      [{ job: { id: 'p0' } }, expect.anything()],
      [{ job: { id: 'p2' } }, expect.anything()],
    ]);
    expect(second).toBeInstanceOf(Error);
    await redis.del(key('wait', 1));
  });
  describe('by a consumer', () => {
    /** Of each call: the partitions asked, and those asked if they have markers. */
    let calls: { takes: readonly Take[]; marked: readonly Take[] }[];
    let nowMs: number;
    /** Called before jobs are taken. */
    let beforeTaking: (marked: readonly Take[]) => Promise<void>;
    const isAnyMarked = () => calls.some(({ marked }) => marked.length > 0);

    /** Waits for markers, after one job of each partition. The leases last while `nowMs` stays. */
    async function startIdle(options: Partial<ConsumerOptions<FoundJob>> = {}, partitions = [0, 1, 2]): Promise<void> {
      await consumer.stop(5_000);
      consumer = newConsumer(300, {
        ...options,
        clocks: [() => nowMs],
        timings: { renewMs: HOUR_MS },
        async take(takes, marked, lock) {
          calls.push({ takes, marked });
          await beforeTaking(marked);
          return await takeJobs(store, takes, marked, lock);
        },
      });
      for (const partition of partitions) await addJobs(jobQueues, partition, [testJob(`p${partition}`)]);
      await consumer.start();
      await eventually('all taken', () => taken.length >= partitions.length);
    }

    beforeEach(() => {
      calls = [];
      nowMs = 0;
      handle = async () => ({ kind: 'done' });
      beforeTaking = async () => undefined;
    });

    it('are those of which markers came, and those that may have got one since', async () => {
      beforeTaking = async (marked) => {
        if (calls.filter((one) => one.marked.length > 0).length > 1) return;
        for (const { partition } of marked) await addJobs(jobQueues, partition, [testJob(`later${partition}`)]);
      };
      await startIdle();
      await eventually('all taken', () => taken.length === 5);
      const [first] = calls.filter(({ marked }) => marked.length > 0);
      const asked = [...first!.takes, ...first!.marked];
      expect(asked.map(({ partition }) => partition).toSorted()).toEqual([0, 1, 2]);
      expect(asked.reduce((sum, { limit }) => sum + limit, 0)).toBe(64);
      expect(errors).toEqual([]);
    });
    it('are no others without a lease on their jobs', async () => {
      await startIdle();
      await eventually('the last marker of those jobs', isAnyMarked);
      calls = [];
      nowMs += DAY_MS;
      await add('wakes');
      await eventually('taken', () => taken.includes('wakes'));
      expect(isAnyMarked()).toBe(false);
    });
    it('do not wait for one whose lease can not be renewed, or that can not be read', async () => {
      await redis.set(key('wait', 1), 'no list');
      await startIdle(
        {
          watch: async (partition, watch) => {
            if (partition === 2) throw new StorageUnavailable('too slow');
            return await jobScripts(store).watch(partition, watch);
          },
        },
        [0],
      );
      await eventually('errors of both', () => new Set(errors).size === 2);
      await add('later');
      await eventually('taken', () => taken.includes('later'));
      await redis.del(key('wait', 1));
      await addJobs(jobQueues, 1, [testJob('readable')]);
      await eventually('taken', () => taken.includes('readable'));
      errors.length = 0;
    });
    it('do not wait for one that can not be looked at', async () => {
      const looked = Promise.withResolvers<void>();
      const elsewhere = Promise.withResolvers<void>();
      let isAdded = false;
      await startIdle({
        concurrency: 3,
        async look(partitions) {
          const found = await lookForJobs(store, partitions);
          if (isAdded) setImmediate(looked.resolve);
          return found;
        },
      });
      await eventually('the last marker of those jobs', isAnyMarked);
      // Behind what takes those jobs.
      await store.redis.set(key('delayed', 1), 'no sorted set');
      handle = async (id) => {
        if (id.startsWith('first')) await looked.promise;
        if (id.startsWith('later')) await elsewhere.promise;
        if (id === 'elsewhere') elsewhere.resolve();
        return { kind: 'done' };
      };
      taken.length = 0;
      await add('first1', 'first2', 'first3', 'later1', 'later2', 'later3');
      await eventually('all slots in use', () => taken.length === 3);
      await addJobs(jobQueues, 2, [testJob('elsewhere')]);
      isAdded = true;
      await eventually('all taken', () => taken.length === 7);
      await redis.del(key('delayed', 1));
      errors.length = 0;
    });
    it('have their slots again after an error', async () => {
      beforeTaking = async () => {
        if (calls.length <= 2) throw new StorageUnavailable('Redis is away');
      };
      await startIdle();
      expect(errors.length).toBeGreaterThan(0);
      errors.length = 0;
    });
  });
});

describe('several jobs taken at once', () => {
  it('are in their order, and the last result says when the next is due if none is left', async () => {
    await add('z1', 'z2', 'z3');
    await addJobs(jobQueues, 0, [{ ...testJob('later'), delayMs: 60_000 }]);
    const [two, lock] = [
      { partition: 0, token: 'a', limit: 2 },
      { lockMs: 30_000, nowMs: Date.now() },
    ];
    expect(await takeFrom(store, two, lock)).toEqual([{ job: { id: 'z1' } }, { job: { id: 'z2' } }]);
    expect(await redis.zrange(key('marker'), 0, '-1', 'WITHSCORES')).toContain('0');
    expect(await takeFrom(store, two, lock)).toEqual([{ job: { id: 'z3' } }, { dueAtMs: expect.any(Number) }]);
    expect(await redis.lrange(key('active'), 0, -1)).toEqual(['z3', 'z2', 'z1']);
    expect(await redis.get(key('z2:lock'))).toBe('a');
  });
  it('start before those end that are over meanwhile, however soon', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `b${i}`);
    const order: string[] = [];
    const secondTaking = Promise.withResolvers<void>();
    let takings = 0;
    await consumer.stop(5_000);
    consumer = newConsumer(100, {
      partitionPrefixes: prefixes.slice(0, 1),
      timings: { burstMs: 60_000, slowStartMs: 0 },
      async take(takes, marked, lock) {
        const found = await takeJobs(store, takes, marked, lock);
        takings += 1;
        if (takings === 2) await secondTaking.promise;
        return found;
      },
      finish: (partition, lock) => {
        order.push(`ends ${lock.jobId}`);
        return finishJob(store, partition, lock);
      },
      async handle({ id }) {
        order.push(`starts ${id}`);
        if (order.length === 32) setImmediate(secondTaking.resolve);
        return { kind: 'done' };
      },
    });
    await add(...ids);
    await consumer.start();
    await eventually('all ended', () => order.length === 80);
    expect(order.slice(0, 40)).toEqual(ids.map((id) => `starts ${id}`));
  });
  it('begin once the next ones have been asked for', async () => {
    const order: string[] = [];
    await consumer.stop(5_000);
    consumer = newConsumer(100, {
      partitionPrefixes: prefixes.slice(0, 1),
      timings: { slowStartMs: 0 },
      take(takes, marked, lock) {
        order.push(`takes ${takes[0]?.limit}`);
        return takeJobs(store, takes, marked, lock);
      },
      async handle() {
        order.push('starts');
        return { kind: 'done' };
      },
    });
    await add(...Array.from({ length: 40 }, (_, i) => `b${i}`));
    await consumer.start();
    await eventually('all started', () => order.filter((what) => what === 'starts').length === 40);
    expect(order.slice(0, 4)).toEqual(['takes 32', 'takes 64', 'starts', 'starts']);
  });
  it('end although the next taking hangs', async () => {
    const ids = Array.from({ length: 33 }, (_, i) => `b${i}`);
    const hangs = Promise.withResolvers<void>();
    const ended: string[] = [];
    let takings = 0;
    await consumer.stop(5_000);
    consumer = newConsumer(100, {
      partitionPrefixes: prefixes.slice(0, 1),
      timings: { slowStartMs: 0 },
      async take(takes, marked, lock) {
        takings += 1;
        if (takings === 2) await hangs.promise;
        return await takeJobs(store, takes, marked, lock);
      },
      finish: (partition, lock) => {
        ended.push(lock.jobId);
        return finishJob(store, partition, lock);
      },
      handle: async () => ({ kind: 'done' }),
    });
    await add(...ids);
    await consumer.start();
    await eventually('those taken before ended', () => ended.length >= 32);
    hangs.resolve();
    await eventually('all ended', () => ended.length === 33);
  });
  it('use no more slots than there are', async () => {
    let inFlight = 0;
    let most = 0;
    const release = Promise.withResolvers<void>();
    handle = async () => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await release.promise;
      inFlight -= 1;
      return { kind: 'done' };
    };
    await add(...Array.from({ length: 40 }, (_, i) => `n${i}`));
    consumer = newConsumer(20);
    await consumer.start();
    await eventually('all slots in use', () => inFlight === 20);
    release.resolve();
    await eventually('all to be handled', () => taken.length === 40);
    expect(most).toBe(20);
    expect(taken).toEqual(Array.from({ length: 40 }, (_, i) => `n${i}`));
    expect(errors).toEqual([]);
  });
  it.each([
    ['one of its jobs has ended', 60_000, 'n0'],
    ['some time is over', 1, undefined],
  ])('use a share of the slots when a process starts, until %s', async (_, slowStartMs, ends) => {
    const [first, others] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    handle = async (id) => {
      await (id === ends ? first : others).promise;
      return { kind: 'done' };
    };
    await add(...Array.from({ length: 20 }, (_, i) => `n${i}`));
    consumer = newConsumer(10, { timings: { slowStartMs } });
    await consumer.start();
    if (ends) {
      await eventually('a share of the slots in use', () => taken.length >= 3);
      expect(taken).toEqual(['n0', 'n1', 'n2']);
      first.resolve();
    }
    await eventually('all slots in use', () => taken.length === (ends ? 11 : 10));
    others.resolve();
    await eventually('all to be handled', () => taken.length === 20);
  });
  it('use that share when the first jobs come, however long there were none', async () => {
    const slowStartMs = 54_321;
    const { setTimeout } = globalThis;
    const timeUp: (() => void)[] = [];
    jest.spyOn(globalThis, 'setTimeout').mockImplementation((callback, ms) => {
      if (ms === slowStartMs) timeUp.push(callback);
      return setTimeout(ms === slowStartMs ? () => undefined : callback, ms === slowStartMs ? 0 : ms);
    });
    const ends = Promise.withResolvers<void>();
    handle = async () => {
      await ends.promise;
      return { kind: 'done' };
    };
    let asked = 0;
    consumer = newConsumer(10, {
      timings: { slowStartMs },
      async take(takes, marked, lock) {
        const found = await takeJobs(store, takes, marked, lock);
        asked += takes.length;
        return found;
      },
    });
    await consumer.start();
    await eventually('all to be asked', () => asked === prefixes.length);
    timeUp[0]!();
    await add(...Array.from({ length: 20 }, (_, i) => `n${i}`));
    await eventually('a share of the slots in use', () => taken.length >= 3);
    expect(taken).toEqual(['n0', 'n1', 'n2']);
    timeUp[1]!();
    await eventually('all slots in use', () => taken.length === 10);
    ends.resolve();
    await eventually('all to be handled', () => taken.length === 20);
  });
  it('use all slots a little after the start, although no partition responds', async () => {
    const asked: number[] = [];
    const never = Promise.withResolvers<never>();
    consumer = newConsumer(3, {
      timings: { slowStartMs: 1 },
      async take(takes) {
        asked.push(...takes.map(({ partition }) => partition));
        return await never.promise;
      },
    });
    await consumer.start();
    await eventually('all to be asked', () => asked.length === prefixes.length);
    never.reject(new StorageUnavailable('never', undefined));
    await eventually('all to fail', () => errors.length === prefixes.length);
    errors.length = 0;
  });
});

describe('order of jobs', () => {
  it('puts due retries behind first attempts that came after them', async () => {
    await failFour(() => add('n1', 'n2'));
    await eventually('all', () => taken.length === 10);
    expect(errors).toEqual([]);
    expect(taken).toEqual(['r1', 'r2', 'r3', 'r4', 'n1', 'n2', 'r1', 'r2', 'r3', 'r4']);
  });

  it('puts advanced retries before first attempts, oldest first, and behind them again after the next failure', async () => {
    await failFour(
      () => add('n1', 'n2', 'n3'),
      async (id) => {
        if (id === 'n1') await jobQueues.advanceRetries(0, 2);
        return id === 'r1' && timesTaken(id) === 2 ? await failAttempt() : { kind: 'done' };
      },
    );
    await eventually('all', () => taken.length === 12);
    expect(errors).toEqual([]);
    expect(taken.slice(4)).toEqual(['n1', 'r1', 'r2', 'n2', 'n3', 'r3', 'r4', 'r1']);
  });

  it('advances no retry if no first attempt waits', async () => {
    const behind: number[] = [];
    const countBehind = async () => behind.push(await redis.zcard(key('prioritized')));
    await failFour(
      async () => undefined,
      async () => {
        if (taken.length === 6) {
          await countBehind();
          await jobQueues.advanceRetries(0, 2);
          await countBehind();
        }
        return { kind: 'done' };
      },
    );
    await eventually('all', () => taken.length === 8);
    expect(errors).toEqual([]);
    expect(behind[0]).toBeGreaterThan(0);
    expect(behind[1]).toBe(behind[0]);
  });

  it('finishes its jobs when paused and takes none until it is resumed, any number of times', async () => {
    await consumer.start();
    for (const round of [1, 2]) {
      const inFlight = Promise.withResolvers<void>();
      handle = async () => {
        await inFlight.promise;
        return { kind: 'done' };
      };
      await add(`a${round}`);
      await eventually('taken', async () => taken.includes(`a${round}`));
      consumer.pause();
      await add(`b${round}`);
      inFlight.resolve();
      await eventually('ended', async () => (await jobQueues.counts()).active === 0);
      expect(await jobQueues.counts()).toMatchObject({ waiting: 1 });
      consumer.resume();
      await eventually('taken', async () => taken.includes(`b${round}`));
    }
    consumer.pause();
    expect(await consumer.stop(5_000)).toBe(true);
    consumer.resume();
    expect([taken, errors]).toEqual([['a1', 'b1', 'a2', 'b2'], []]);
  });

  it('lets jobs in flight go on for half of a short grace, before it makes them give up', async () => {
    const order: string[] = [];
    const inFlight = Promise.withResolvers<void>();
    consumer = newConsumer(1, { timings: { putBackMs: 60_000 }, giveUp: () => order.push('gave up') });
    handle = async () => {
      await inFlight.promise;
      return { kind: 'done' };
    };
    await add('a');
    await consumer.start();
    await eventually('taken', async () => taken.includes('a'));
    const stopping = consumer.stop(60_000);
    // After a timer that would make it give up at once.
    setTimeout(() => {
      order.push('ended');
      inFlight.resolve();
    }, 1);
    expect(await stopping).toBe(true);
    expect(order).toEqual(['ended']);
  });

  it("makes a retry due after its delay, counted from the attempt's end", async () => {
    const endedAtMs = Date.now();
    handle = async () => {
      // Between the attempt and the move of its job, Redis may have been away.
      await eventually('the clock to move on', () => Date.now() > endedAtMs + 1);
      return { kind: 'retry', endedAtMs, delayMs: HOUR_MS, reason: 'attempt failed' };
    };
    await add('r1');
    await consumer.start();
    await eventually('put back', async () => (await jobQueues.counts()).delayed === 1);
    // BullMQ's score of a delayed job.
    expect(Number(await redis.zscore(key('delayed'), 'r1')) / 0x1000).toBe(endedAtMs + HOUR_MS);
  });

  it('takes a retry at once if its time has passed before its job was moved', async () => {
    handle = async (id) =>
      timesTaken(id) > 1
        ? { kind: 'done' }
        : { kind: 'retry', endedAtMs: Date.now() - 2 * HOUR_MS, delayMs: HOUR_MS, reason: 'attempt failed' };
    await add('r1');
    await consumer.start();
    await eventually('the retry', () => timesTaken('r1') === 2);
  });

  it('leaves nothing behind for a job that is removed during its attempt', async () => {
    handle = async () => {
      await redis.del(key('r1'));
      return { kind: 'retry', endedAtMs: Date.now(), delayMs: 1, reason: 'attempt failed' };
    };
    await add('r1');
    await consumer.start();
    // A consumer that is stopping reports no errors, so the stop waits for this one.
    await eventually('the error', () => errors.length > 0);
    await consumer.stop(5_000);
    expect(await redis.exists(key('r1'))).toBe(0);
    expect(errors).toEqual([expect.stringContaining('Missing key for job r1')]);
  });
});

describe('several partitions', () => {
  it.each([
    ['evenly among the partitions that have jobs, whichever had them first', 1, [2, 2]],
    ['in proportion to the addresses of their jobs', 3, [3, 1]],
  ])('shares the slots %s', async (_, addresses, shares) => {
    await consumer.stop(5_000);
    consumer = newConsumer(4);
    const held = new Map<string, PromiseWithResolvers<JobOutcome>>();
    handle = async (id) => {
      const end = Promise.withResolvers<JobOutcome>();
      held.set(id, end);
      return await end.promise;
    };
    const inFlight = () => [...held.keys()].sort();
    const finishOne = (id: string | undefined) => {
      held.get(id!)!.resolve({ kind: 'done' });
      held.delete(id!);
    };
    // Ids that begin with the same nine characters are for the same address.
    const jobsTo = (letter: string, count: number) =>
      Array.from({ length: 500 }, (_, i) => testJob(`${letter}${`${i % count}`.padStart(8)}-${i}`));
    await addJobs(jobQueues, 0, jobsTo('a', addresses));
    await consumer.start();
    await eventually('one partition to use all slots', () => held.size === 4);
    await addJobs(jobQueues, 1, jobsTo('b', 1));
    const count = (letter: string) => inFlight().filter((id) => id.startsWith(letter)).length;
    while (count('b') < shares[1]!) {
      finishOne(inFlight().find((id) => id.startsWith('a')));
      await eventually('the free slot to be used', () => held.size === 4);
    }
    // From now on each partition keeps its share.
    for (const letter of ['a', 'b']) {
      finishOne(inFlight().find((id) => id.startsWith(letter)));
      await eventually('the free slot to be used', () => held.size === 4);
      expect([count('a'), count('b')]).toEqual(shares);
    }
    handle = async () => ({ kind: 'done' });
    for (const id of inFlight()) finishOne(id);
    await eventually('all', () => taken.length === 1_000);
    expect(errors).toEqual([]);
  });

  it('takes jobs of each partition that are added while all are empty', async () => {
    handle = async () => ({ kind: 'done' });
    await consumer.start();
    for (const partition of [2, 0, 1, 1]) {
      const id = `p${partition}-${taken.length}`;
      const before = taken.length;
      await addJobs(jobQueues, partition, [testJob(id)]);
      await eventually('taken', () => taken.length === before + 1);
    }
    await eventually('ended', async () => (await jobQueues.counts()).active === 0);
    expect(errors).toEqual([]);
  });
});

describe('BullMQ', () => {
  it("agrees with the scripts: its workers go on with the same queue, and what they leave is the store's to take", async () => {
    handle = async (id) => (id === 'bad' ? { kind: 'failed', reason: 'gone' } : { kind: 'done' });
    const byBull: string[] = [];
    const options = { connection: redis as Redis, prefix: prefixes[0]!, skipVersionCheck: true };
    const bull = new Worker('deliveries', async ({ id }) => void byBull.push(String(id)), {
      ...options,
      removeOnComplete: { count: 0 },
    });
    await add('x1', 'x2');
    await eventually('taken by BullMQ', () => byBull.length === 2);
    await bull.close();
    await add('x3', 'bad');
    await consumer.start();
    await eventually('taken', async () => taken.length === 2 && (await jobQueues.counts()).active === 0);
    expect([byBull, taken, errors]).toEqual([['x1', 'x2'], ['x3', 'bad'], []]);
    expect(await jobQueues.counts()).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 1 });
    expect(await redis.hget(key('bad'), 'failedReason')).toBe('gone');
    const left = (await redis.keys(`${prefixes[0]}:*`)).map((name) => name.slice(prefixes[0]!.length));
    expect(left.filter((name) => name.includes('lock') || name.includes('x'))).toEqual([]);
  });

  it('finds the jobs of a consumer that died, and a consumer finds those of a dead worker of BullMQ', async () => {
    await add('y1');
    await takeOne({ nextToken: 'dead', lockMs: 1, nowMs: Date.now() });
    await consumer.stop(5_000);
    consumer = newConsumer(1, { timings: { stalledCheckMs: 20 } });
    await consumer.start();
    await eventually('taken over', () => taken.includes('y1'));
    expect(errors).toEqual([]);
  });

  it('finds them also after the clock of Redis was set back, which keeps the key of the last check for longer', async () => {
    await add('y1');
    await takeOne({ nextToken: 'dead', lockMs: 1, nowMs: Date.now() });
    await consumer.stop(5_000);
    await redis.set(key('stalled-check'), '', 'PX', HOUR_MS);
    consumer = newConsumer(1, { timings: { stalledCheckMs: 20 } });
    await consumer.start();
    await eventually('taken over', () => taken.includes('y1'));
    expect(errors).toEqual([]);
  });

  it('takes no job while operators have paused the queue, or while as many are active as they allow', async () => {
    handle = async () => ({ kind: 'done' });
    const [queue] = jobQueues.all;
    await queue!.pause();
    await add('z1');
    const lock = { nextToken: 'token', lockMs: 60_000, nowMs: Date.now() };
    expect(await takeOne(lock)).toEqual({ dueAtMs: undefined });
    await queue!.resume();
    await queue!.setGlobalConcurrency(1);
    expect(await takeOne(lock)).toEqual({ job: { id: 'z1' } });
    await add('z2');
    expect(await takeOne(lock)).toEqual({ dueAtMs: undefined });
    const ended = { ...lock, nextToken: undefined, jobId: 'z1', token: 'token' };
    expect(await finishJob(store, 0, ended)).toEqual({ code: 0, next: undefined });
    expect(await takeOne(lock)).toEqual({ job: { id: 'z2' } });
  });

  it('says when the next retry is due while no job may be taken, so it is not late', async () => {
    const [queue] = jobQueues.all;
    const nowMs = Date.now();
    const lock = { nextToken: 'token', lockMs: 60_000, nowMs };
    await addJobs(
      jobQueues,
      0,
      [testJob('d1'), testJob('d2')].map((job, i) => ({ ...job, delayMs: (i + 1) * HOUR_MS })),
    );
    await queue!.pause();
    const dueAt = async (atMs: number) => ((await takeOne({ ...lock, nowMs: atMs })) as { dueAtMs: number }).dueAtMs;
    const dueAtMs = await dueAt(nowMs);
    expect(dueAtMs).toBeGreaterThanOrEqual(nowMs + HOUR_MS);
    await queue!.resume();
    await queue!.setGlobalConcurrency(1);
    await add('z1');
    expect(await takeOne(lock)).toEqual({ job: { id: 'z1' } });
    expect(await dueAt(nowMs)).toBe(dueAtMs);
    // One that is due waits with the others from then on.
    expect(await dueAt(dueAtMs)).toBeGreaterThan(dueAtMs);
    expect(await dueAt(dueAtMs + 7_200_000)).toBeUndefined();
    expect(await jobQueues.counts()).toMatchObject({ active: 1, waiting: 2, delayed: 0 });
  });

  it('wakes a worker that found as many jobs active as operators allow when one is done and no other is taken', async () => {
    await jobQueues.all[0]!.setGlobalConcurrency(1);
    handle = async () => {
      consumer.pause();
      await redis.del(key('marker'));
      return { kind: 'done' };
    };
    await add('one', 'two');
    await consumer.start();
    await eventually('taken', () => taken.length === 1);
    await eventually('the marker', async () => (await redis.zscore(key('marker'), '0')) === '0');
    expect([taken, errors, await jobQueues.counts()]).toMatchObject([['one'], [], { active: 0, waiting: 1 }]);
  });

  it.each<Exclude<JobOutcome, { kind: 'done' }>>([
    { kind: 'retry', endedAtMs: Date.now(), delayMs: HOUR_MS, reason: 'attempt failed' },
    { kind: 'failed', reason: 'gone' },
    { kind: 'snoozed', untilMs: 4_102_444_800_000 },
  ])('wakes a worker that found as many jobs active as operators allow when one ends as $kind', async (outcome) => {
    let nowMs = 0;
    const endings = createEndings({
      redis,
      partitionPrefixes: prefixes,
      lockMs: 60_000,
      stalledCheckMs: 15_000,
      onError: (error) => void errors.push(String(error)),
      now: () => nowMs,
    });
    await endings.ready();
    const lock = { nextToken: 'token', lockMs: 60_000, nowMs: Date.now() };
    const marker = () => redis.zscore(key('marker'), '0');
    await add('one', 'two', 'three');
    for (const id of ['one', 'two']) {
      expect(await takeOne(lock)).toEqual({ job: { id } });
      await redis.del(key('marker'));
      await endings.settle(0, id, 'token', outcome);
      expect(await marker()).toBe(id === 'one' ? null : '0');
      await jobQueues.all[0]!.setGlobalConcurrency(1);
      nowMs += 1_000;
    }
    // Sent again because the reply was lost.
    await redis.del(key('marker'));
    await expect(endings.settle(0, 'two', 'token', outcome)).rejects.toMatchObject({ code: ErrorCode.JobLockNotExist });
    expect(await marker()).toBe('0');
    await endings.close();
    expect(errors).toEqual([]);
  });

  it('refuses to end a job without its lock, with the codes of BullMQ', async () => {
    const lock = { nextToken: undefined, lockMs: 60_000, nowMs: Date.now() };
    const end = async (token: string) => (await finishJob(store, 0, { ...lock, jobId: 'w1', token })).code;
    expect(await end('mine')).toBe(ErrorCode.JobNotExist);
    await add('w1');
    expect(await end('mine')).toBe(ErrorCode.JobLockNotExist);
    await takeOne({ ...lock, nextToken: 'mine' });
    expect(await end('other')).toBe(ErrorCode.JobLockMismatch);
    expect(await jobQueues.counts()).toMatchObject({ active: 1 });
    expect(await end('mine')).toBe(0);
    expect(await jobQueues.counts()).toMatchObject({ active: 0, waiting: 0 });
  });

  it('ends a job that may have stalled: BullMQ puts neither it nor another one back', async () => {
    const endings = createEndings({
      ...optionsOf(1),
      lockMs: 60_000,
      stalledCheckMs: 15_000,
      onError: (error) => void errors.push(String(error)),
    });
    await endings.ready();
    const check = async () => {
      await redis.del(key('stalled-check'));
      await endings.checkStalled();
    };
    const lock = { nextToken: 'token', lockMs: 60_000, nowMs: Date.now() };
    await add('s1', 's2');
    for (const id of ['s1', 's2']) expect(await takeOne(lock)).toEqual({ job: { id } });
    await check();
    expect((await redis.smembers(key('stalled'))).sort()).toEqual(['s1', 's2']);
    await finishJob(store, 0, { ...lock, nextToken: undefined, jobId: 's1', token: 'token' });
    await check();
    expect(await jobQueues.counts()).toMatchObject({ active: 1, waiting: 0 });
    expect(await redis.keys(`${key('s1')}*`)).toEqual([]);
    expect(await redis.smembers(key('stalled'))).toEqual(['s2']);
    await endings.close();
    expect(errors).toEqual([]);
  });

  it('says of each partition when its next job is due, without taking it', async () => {
    expect(await lookForJobs(store, [0, 1, 2])).toEqual([undefined, undefined, undefined]);
    await addJobs(jobQueues, 2, [{ ...testJob('later'), delayMs: HOUR_MS }]);
    await addJobs(jobQueues, 1, [{ ...testJob('now'), isRetry: true }]);
    const [none, now, later = 0] = await lookForJobs(store, [0, 1, 2]);
    expect([none, now]).toEqual([undefined, 0]);
    await redis.set(key('delayed', 0), 'no sorted set');
    expect(await lookForJobs(store, [0, 1])).toEqual([expect.any(Error), 0]);
    await redis.del(key('delayed', 0));
    expect(Math.abs(Number(later) - Date.now() - HOUR_MS)).toBeLessThan(60_000);
    expect(await jobQueues.counts()).toMatchObject({ waiting: 1, delayed: 1, active: 0 });
  });

  it('returns when the next delayed job is due, and hands it out then', async () => {
    const dueAtMs = Date.now() + HOUR_MS;
    await addJobs(jobQueues, 0, [{ ...testJob('later'), delayMs: HOUR_MS }]);
    const lock = { nextToken: 'token', lockMs: 60_000, nowMs: Date.now() };
    const found = await takeOne(lock);
    expect('dueAtMs' in found && Math.abs((found.dueAtMs ?? 0) - dueAtMs)).toBeLessThan(60_000);
    expect(await takeOne({ ...lock, nowMs: dueAtMs + 60_000 })).toEqual({ job: { id: 'later' } });
  });

  it('returns when the next delayed job is due behind those that are due now, and counts no retries when there are none', async () => {
    const inAnHourMs = Date.now() + HOUR_MS;
    for (const [id, delayMs] of [
      ['due', 1_000],
      ['later', HOUR_MS],
    ] as const) {
      await addJobs(jobQueues, 0, [{ ...testJob(id), delayMs, isRetry: true }]);
    }
    const lock = { lockMs: 60_000, nowMs: Date.now() + 60_000 };
    const [due, next, ...more] = await takeFrom(store, { partition: 0, token: 'token', limit: 9 }, lock);
    expect([due, more]).toEqual([{ job: { id: 'due' } }, []]);
    expect(next && 'dueAtMs' in next && Math.abs((next.dueAtMs ?? 0) - inAnHourMs)).toBeLessThan(60_000);
    expect(await redis.exists(key('pc'), key('prioritized'))).toBe(0);
  });
});
