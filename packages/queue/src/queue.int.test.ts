/** In which order a real BullMQ hands out first attempts and retries. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { eventually, testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { type Consumer, createConsumer, createProducer, type JobOutcome, type Producer } from './index.ts';

let redis: Redis;
let base: string;
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
  base = `${testPrefix()}:{0}`;
  taken = [];
  errors = [];
  producer = createProducer({ redis, bases: [base], onError });
  consumer = createConsumer({
    redis,
    base,
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
  const keys = await redis.keys(`${base}:*`);
  await redis.del(keys);
  await redis.quit();
});

/** Four jobs whose first attempts fail; while the last of them is in hand, the retries come due and `meanwhile` runs. */
async function failFour(meanwhile: () => Promise<void>): Promise<void> {
  const dueAtMs = Date.now() + 300;
  handle = async (id) => {
    const isFirst = taken.filter((one) => one === id).length === 1;
    if (!isFirst || !id.startsWith('r')) return { kind: 'done' };
    if (id === 'r4') {
      await meanwhile();
      await eventually('the retries are due', async () => Date.now() > dueAtMs + 40);
    }
    // One after the other, so that their order is known.
    const ownMs = dueAtMs + 10 * taken.length;
    return { kind: 'retry', delayMs: Math.max(1, ownMs - Date.now()), reason: 'attempt failed' };
  };
  await add('r1', 'r2', 'r3', 'r4');
  await consumer.start();
}

describe('order', () => {
  it('retries that are due stand behind first attempts that came after them', async () => {
    await failFour(() => add('n1', 'n2'));
    await eventually('all', async () => taken.length === 10);
    expect(errors).toEqual([]);
    expect(taken).toEqual(['r1', 'r2', 'r3', 'r4', 'n1', 'n2', 'r1', 'r2', 'r3', 'r4']);
  });

  it('retries let through come before first attempts, the oldest first, and stand behind them again after the next failure', async () => {
    await failFour(() => add('n1', 'n2', 'n3'));
    const done = handle;
    handle = async (id) => {
      if (id === 'n1') await producer.advanceRetries(0, 2);
      if (id === 'r1' && taken.filter((one) => one === id).length === 2) {
        return { kind: 'retry', delayMs: 1, reason: 'attempt failed' };
      }
      return await done(id);
    };
    await eventually('all', async () => taken.length === 12);
    expect(errors).toEqual([]);
    expect(taken.slice(4)).toEqual(['n1', 'r1', 'r2', 'n2', 'n3', 'r3', 'r4', 'r1']);
  });

  it('nothing is let through where no first attempt waits', async () => {
    await failFour(async () => undefined);
    const done = handle;
    const behind: number[] = [];
    const countBehind = async () => behind.push(await redis.zcard(`${base}:deliveries:prioritized`));
    handle = async (id) => {
      if (taken.length === 6) {
        await countBehind();
        await producer.advanceRetries(0, 2);
        await countBehind();
      }
      return await done(id);
    };
    await eventually('all', async () => taken.length === 8);
    expect(errors).toEqual([]);
    expect(behind[0]).toBeGreaterThan(0);
    expect(behind[1]).toBe(behind[0]);
  });

  it('a job that is gone when its attempt ends leaves nothing behind', async () => {
    handle = async () => {
      await redis.del(`${base}:deliveries:r1`);
      return { kind: 'retry', delayMs: 1, reason: 'attempt failed' };
    };
    await add('r1');
    await consumer.start();
    await eventually('taken', async () => taken.length === 1);
    await consumer.stop(5_000);
    expect(await redis.exists(`${base}:deliveries:r1`)).toBe(0);
    expect(errors).toEqual([expect.stringContaining('Missing key for job r1')]);
  });
});
