/** The order in which a real BullMQ hands out first attempts and retries. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { eventually, testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { type Consumer, createConsumer, createProducer, type JobOutcome, type Producer } from './index.ts';

let redis: Redis;
let partitionPrefix: string;
let producer: Producer;
let consumer: Consumer;
/** The jobs in the order in which they were handed out. */
let taken: string[];
let handle: (id: string) => Promise<JobOutcome>;
let errors: string[];

const onError = ({ message }: Error) => errors.push(message);
const jobOf = (deliveryId: string) => ({
  deliveryId,
  generation: 0,
  subscriptionId: 'sub',
  event: eventRef({ id: 'evt', environment: 'sandbox' }),
});
const add = (...ids: string[]) => producer.add(0, ids.map(jobOf));

beforeEach(() => {
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
  partitionPrefix = `${testPrefix()}:{0}`;
  taken = [];
  errors = [];
  producer = createProducer({ redis, partitionPrefixes: [partitionPrefix], onError });
  consumer = createConsumer({
    redis,
    partitionPrefix,
    concurrency: 1,
    async handle({ deliveryId }) {
      taken.push(deliveryId);
      return await handle(deliveryId);
    },
    giveUp: () => undefined,
    onError,
  });
});
afterEach(async () => {
  await consumer.stop(5_000);
  await producer.close();
  const keys = await redis.keys(`${partitionPrefix}:*`);
  await redis.del(keys);
  await redis.quit();
});

/** How often a job has been handed out, this time included. */
const timesTaken = (id: string) => taken.filter((takenId) => takenId === id).length;

/**
 * Fails an attempt so that its retry is due after 1 ms. BullMQ orders retries by when they are due, in whole milliseconds, so the clock
 * must move on between two failures: only then is the first to fail also the first to be due.
 */
async function failAttempt(): Promise<JobOutcome> {
  const startedAtMs = Date.now();
  await eventually('the clock to move on', () => Date.now() > startedAtMs + 1);
  return { kind: 'retry', delayMs: 1, reason: 'attempt failed' };
}

/**
 * Runs four jobs, r1 to r4, whose first attempts fail in this order. The retries of the first three are due while r4 is in flight; then
 * `meanwhile` runs. `later` decides about every other attempt.
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
        if (id === 'n1') await producer.advanceRetries(0, 2);
        return id === 'r1' && timesTaken(id) === 2 ? await failAttempt() : { kind: 'done' };
      },
    );
    await eventually('all', () => taken.length === 12);
    expect(errors).toEqual([]);
    expect(taken.slice(4)).toEqual(['n1', 'r1', 'r2', 'n2', 'n3', 'r3', 'r4', 'r1']);
  });

  it('advances no retry if no first attempt waits', async () => {
    const behind: number[] = [];
    const countBehind = async () => behind.push(await redis.zcard(`${partitionPrefix}:deliveries:prioritized`));
    await failFour(
      async () => undefined,
      async () => {
        if (taken.length === 6) {
          await countBehind();
          await producer.advanceRetries(0, 2);
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
      await consumer.pause();
      await add(`b${round}`);
      inFlight.resolve();
      await eventually('ended', async () => (await producer.counts()).active === 0);
      expect(await producer.counts()).toMatchObject({ waiting: 1 });
      await consumer.resume();
      await eventually('taken', async () => taken.includes(`b${round}`));
    }
    await consumer.pause();
    expect(await consumer.stop(5_000)).toBe(true);
    await consumer.resume();
    expect([taken, errors]).toEqual([['a1', 'b1', 'a2', 'b2'], []]);
  });

  it('leaves nothing behind for a job that is removed during its attempt', async () => {
    handle = async () => {
      await redis.del(`${partitionPrefix}:deliveries:r1`);
      return { kind: 'retry', delayMs: 1, reason: 'attempt failed' };
    };
    await add('r1');
    await consumer.start();
    // A consumer that is stopping reports no errors, so the stop waits for this one.
    await eventually('the error', () => errors.length > 0);
    await consumer.stop(5_000);
    expect(await redis.exists(`${partitionPrefix}:deliveries:r1`)).toBe(0);
    expect(errors).toEqual([expect.stringContaining('Missing key for job r1')]);
  });
});
