/** What a worker knows of an address that it meets for the first time, on a real Redis. */
import { expect, it } from '@jest/globals';
import { healthKey, prefixOfSubscription } from '../../../../packages/store/src/keys.ts';
import { report, store, subscribe } from '../../../../packages/store/src/test-deliveries.ts';
import { EarlierAttempts } from './earlier-attempts.ts';
import { Slots } from './slots.ts';

const errors: Error[] = [];
const newWorker = () => {
  const slots = new Slots({ total: 10, perAddress: 10, perHost: 10, now: () => 0 });
  return { slots, earlier: new EarlierAttempts({ store, slots, onError: (error) => errors.push(error) }) };
};
/** How many slots an address gets from a process in which 7 of 10 are those of unknown addresses. */
async function slotsOf({ id }: { id: string }): Promise<number> {
  const { slots, earlier } = newWorker();
  for (let i = 0; i < 7; i++) slots.acquire(`unknown-${i}`);
  await earlier.learn(id);
  expect(earlier.learn(id)).toBeUndefined();
  return Array.from({ length: 4 }, () => slots.acquire(id)).filter((slot) => slot !== undefined).length;
}

it('is how the last attempts of other workers ended', async () => {
  const one = await subscribe();
  // An unknown address gets none of the last slots.
  expect(await slotsOf(one)).toBe(0);
  await report(one, 'x.');
  // A known one gets a first slot.
  expect(await slotsOf(one)).toBe(1);
  // One that fails without delay is as an unknown one, so that it gets through soon once it responds again.
  await report(one, 'x');
  expect(await slotsOf(one)).toBe(0);
});

it('is that they were slow, whether they succeeded or not', async () => {
  const one = await subscribe();
  // A slow one has its share of half of all slots.
  await report(one, 't', new Map(), 501);
  expect(await slotsOf(one)).toBe(2);
  await report(one, '..', new Map(), 501);
  expect(await slotsOf(one)).toBe(2);
  await report(one, '..', new Map(), 500);
  expect(await slotsOf(one)).toBe(1);
});

it('is nothing if Redis cannot be read', async () => {
  const one = await subscribe();
  await store.redis.set(healthKey(prefixOfSubscription(store, one.id), one.id), 'text of another program');
  expect(await slotsOf(one)).toBe(0);
  expect(errors).toMatchObject([{ message: expect.stringContaining('WRONGTYPE') }]);
});

it('is read once for all jobs of an address that come together', async () => {
  const { earlier } = newWorker();
  const reading = earlier.learn('sub_1');
  expect(reading).toBeInstanceOf(Promise);
  expect(earlier.learn('sub_1')).toBe(reading);
  await reading;
});
