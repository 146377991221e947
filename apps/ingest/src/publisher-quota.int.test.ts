/** What publishers have stored is counted in Redis, on a real one. */
import { expect, it, jest } from '@jest/globals';
import { HOUR_MS, StorageUnavailable } from '@posthorn/core';
import { type Clock, createLogger, systemClock } from '@posthorn/runtime';
import { addPublisherUsage } from '@posthorn/store';
import { fakeClock } from '@posthorn/testing';
import { Registry } from 'prom-client';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createPublisherQuota, type Quota } from './publisher-quota.ts';

function newQuota(publishers: readonly string[], options: { quota?: Quota; clock?: Clock; registry?: Registry } = {}) {
  return createPublisherQuota({
    store,
    quota: { share: 0.5 },
    publishers,
    registry: new Registry(),
    clock: systemClock,
    logger: createLogger({ app: 'test', level: 'silent' }),
    ...options,
  });
}

it('is still counted on the other masters of a Cluster while one is away', async () => {
  const { service, count } = newQuota(['away', 'here']);
  for (const publisher of ['away', 'here']) count(publisher, { id: 'evt_1', dataJson: 'x'.repeat(1_000) }, 0);
  const error = new StorageUnavailable('It is away');
  const multi = Object.assign(store.redis.multi(), { exec: () => Promise.reject(error) });
  jest.spyOn(store.redis, 'time').mockRejectedValueOnce(error as never);
  jest.spyOn(store.redis, 'multi').mockReturnValueOnce(multi);
  await expect(service.start()).rejects.toBe(error);
  expect(await addPublisherUsage(store, 'away', 0, Date.now())).toBe(0);
  expect(await addPublisherUsage(store, 'here', 0, Date.now())).toBeGreaterThan(1_000);
});

it('is read again after the clock was set back', async () => {
  const clock = fakeClock(Date.now());
  const { service, count, check } = newQuota(['one'], { quota: { bytes: 1_000 }, clock });
  count('one', { id: 'evt_1', dataJson: 'x'.repeat(1_000) }, 0);
  await service.start();
  expect(() => check('one')).toThrow('one has about 0.0 MB stored in Redis');
  for (const key of await store.redis.keys(`${store.prefix}:stored:*`)) await store.redis.del(key);
  clock.advance(-HOUR_MS);
  // What the service also does once a second.
  await service.start();
  expect(() => check('one')).not.toThrow();
  await service.stop(0);
});

it('counts the room that long ids take in the event, its search entries and its deliveries', async () => {
  const registry = new Registry();
  const { count } = newQuota(['short', 'long'], { registry });
  count('short', { id: 'x'.repeat(40), dataJson: '{}' }, 10);
  count('long', { id: 'x'.repeat(128), dataJson: '{}' }, 10);
  const [gauge] = await registry.getMetricsAsJSON();
  const [short = 0, long = 0] = gauge?.values.map(({ value }) => value) ?? [];
  // With an id of 128 characters, Redis took 5,700 bytes more for an event with 10 deliveries.
  expect(long - short).toBeGreaterThan(5_700);
});
