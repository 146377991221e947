/** A receiver's memory in a real Redis: several processes share it. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { signatureHeader } from '@posthorn/signing';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { createReceiver } from './receiver.ts';
import { memoryStore, type ReceiverStore, redisStore } from './stores.ts';

let redis: Redis;
let prefix: string;
beforeEach(() => {
  redis = new Redis(testRedisUrl());
  prefix = testPrefix();
});
afterEach(async () => {
  for (const key of await redis.keys(`${prefix}*`)) await redis.del(key);
  redis.disconnect();
});

const STORES: Record<string, () => ReceiverStore> = {
  memory: () => memoryStore(),
  Redis: () => redisStore((...command) => redis.call(...command), { prefix }),
};

describe.each(Object.keys(STORES))('in %s', (kind) => {
  it('an event is claimed once, until it is released; a finished one never again', async () => {
    const store = STORES[kind]!();
    const claims = [store.claim('a'), store.claim('a'), store.claim('b')];
    expect(await Promise.all(claims)).toEqual([true, 'in_progress', true]);
    await store.release('a');
    expect(await store.claim('a')).toBe(true);
    await store.finish('a');
    expect(await store.claim('a')).toBe(false);
  });
  it('a session only advances', async () => {
    const store = STORES[kind]!();
    const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
    const advanced = [];
    for (const second of [2, 1, 2, 3]) advanced.push(await store.advance('s', at(second)));
    expect(advanced).toEqual([true, false, true, true]);
    expect(await store.advance('other', at(1))).toBe(true);
  });
});

it('in Redis, a claim ends with its lease, and everything expires', async () => {
  const store = redisStore((...command) => redis.call(...command), { prefix, leaseMs: 60_000, keepMs: 120_000 });
  const leftMs = (key: string) => redis.pttl(`${prefix}:${key}`);
  await store.claim('a');
  // Redis says -1 of a key that never expires.
  expect(await leftMs('event:a')).toBeGreaterThan(0);
  expect(await leftMs('event:a')).toBeLessThanOrEqual(60_000);
  await store.finish('a');
  await store.advance('s', '2026-01-01T00:00:00.000Z');
  for (const key of ['event:a', 'session:s']) {
    expect(await leftMs(key)).toBeGreaterThan(60_000);
    expect(await leftMs(key)).toBeLessThanOrEqual(120_000);
  }
});

it('in Redis, an event that another process finished after the lease stays finished', async () => {
  const store = STORES.Redis!();
  await store.claim('a');
  // The lease ends.
  await redis.del(`${prefix}:event:a`);
  await store.claim('a');
  await store.finish('a');
  await store.release('a');
  expect(await store.claim('a')).toBe(false);
});

it('in Redis, a claim is released only by the process that has it', async () => {
  const [one, other] = [STORES.Redis!(), STORES.Redis!()];
  await one.claim('a');
  // The lease ends.
  await redis.del(`${prefix}:event:a`);
  expect(await other.claim('a')).toBe(true);
  await one.release('a');
  expect(await one.claim('a')).toBe('in_progress');
  await other.release('a');
  expect(await one.claim('a')).toBe(true);
  // As 0.1.0 has stored it.
  await redis.set(`${prefix}:event:b`, 'claimed');
  await one.release('b');
  expect(await one.claim('b')).toBe('in_progress');
});

it('in Redis, an event whose process died before it responded is processed by another one after the lease', async () => {
  const processed: string[] = [];
  const receiver = createReceiver({
    secrets: 'whsec_of_the_receiver',
    store: STORES.Redis!(),
    onEvent: ({ id }) => void processed.push(id),
  });
  const data = { id: 'session-1', status: 'approved' };
  const created_at = '2026-01-01T00:00:00.000Z';
  const text = JSON.stringify({ id: 'a', type: 'session.approved', created_at, environment: 'sandbox', data });
  const body = new TextEncoder().encode(text);
  const signature = signatureHeader(['whsec_of_the_receiver'], Math.floor(Date.now() / 1000), text);
  const header = (name: string) => (name === 'service-signature' ? signature : undefined);
  const send = async () => {
    const reply = await receiver.receive({ method: 'POST', header, body });
    await reply.process();
    return [reply.status, processed.length];
  };
  // What the process that died had done.
  await STORES.Redis!().claim('sandbox:a');
  expect(await send()).toEqual([503, 0]);
  // The lease ends.
  await redis.del(`${prefix}:event:sandbox:a`);
  expect(await send()).toEqual([200, 1]);
  expect(await send()).toEqual([200, 1]);
});

it.each([Number.NaN, 0, -1])('in memory, there is no room for %d entries', (maxEntries) => {
  expect(() => memoryStore({ maxEntries })).toThrow(TypeError);
});

it('in memory, the oldest entries make room for new ones', async () => {
  const store = memoryStore({ maxEntries: 2 });
  for (const event of ['a', 'b', 'c']) await store.claim(event);
  expect([await store.claim('c'), await store.claim('a')]).toEqual(['in_progress', true]);
  // It had to make room before it was finished.
  await store.finish('b');
  expect(await store.claim('b')).toBe(true);
});
