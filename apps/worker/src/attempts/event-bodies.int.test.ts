/** The bodies that a worker sends: each is read once, however many jobs need it, on a real Redis. */
import { expect, it, jest } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { prefixOfEvent, storeEvent } from '@posthorn/store';
import { event, store, subscriptionIdIn, time } from '../../../../packages/store/src/test-deliveries.ts';
import { createEventBodies } from './event-bodies.ts';

const JOBS = 32;

/** Stores an event for this many subscriptions, and counts the reads of it from then on. */
async function storedFor(subscriptions: number) {
  const subscriptionIds = Array.from({ length: subscriptions }, () => subscriptionIdIn(0));
  const sent = event();
  const ref = eventRef(sent);
  await storeEvent(store, { ref, event: sent, acceptedAtMs: time.nowMs, subscriptionIds });
  const get = jest.spyOn(store.redis, 'get');
  return { ref, key: `${prefixOfEvent(store, ref)}:event:${ref}`, reads: () => get.mock.calls.length };
}

it('are read and decoded once for all jobs of a burst, whether or not they are kept then', async () => {
  for (const subscriptions of [JOBS, 1]) {
    const { ref, reads } = await storedFor(subscriptions);
    const bodies = createEventBodies(store);
    const before = reads();
    const loaded = await Promise.all(Array.from({ length: JOBS }, () => bodies.load(ref)));
    expect(reads() - before).toBe(1);
    expect(loaded[0]).toMatchObject({ body: expect.stringContaining('"session.created"') });
    expect(new Set(loaded).size).toBe(1);
  }
});

it('are read again after a read that failed', async () => {
  const { ref, key } = await storedFor(JOBS);
  const text = await store.redis.getBuffer(key);
  await store.redis.del(key);
  await store.redis.hset(key, 'wrong', 1);
  const bodies = createEventBodies(store);
  const loads = await Promise.allSettled([bodies.load(ref), bodies.load(ref)]);
  expect(loads.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await store.redis.set(key, text!);
  expect(await bodies.load(ref)).toMatchObject({ body: expect.stringContaining('"session.created"') });
});

it('reject with the name of the event if it is not as it must be', async () => {
  const { ref } = await storedFor(1);
  const load = async () => await createEventBodies(store).load(ref, 'of another program');
  await expect(load()).rejects.toThrow(`The record of event ${ref} can't be read: `);
});

it('are read again once they may have been erased', async () => {
  const { ref, key, reads } = await storedFor(JOBS);
  const bodies = createEventBodies(store);
  await bodies.load(ref);
  await store.redis.del(key);
  bodies.forgetAll();
  const before = reads();
  expect(await bodies.load(ref)).toBe('expired');
  expect(reads() - before).toBe(1);
});

it('are named as in memory only while they are: a script that takes jobs leaves that event out', async () => {
  const { ref } = await storedFor(JOBS);
  const bodies = createEventBodies(store);
  await bodies.load(ref);
  expect(bodies.latest()).toBe(ref);
  bodies.forgetAll();
  expect(bodies.latest()).toBeUndefined();
});
