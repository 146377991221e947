/** What publishers have stored is counted in Redis, on a real one. */
import { expect, it, jest } from '@jest/globals';
import { StorageUnavailable } from '@posthorn/core';
import { createLogger } from '@posthorn/runtime';
import { addPublisherUsage } from '@posthorn/store';
import { Registry } from 'prom-client';
import { store } from '../../../packages/store/src/test-deliveries.ts';
import { createPublisherQuota } from './publisher-quota.ts';

it('is still counted on the other masters of a Cluster while one is away', async () => {
  const { service, count } = createPublisherQuota({
    store,
    quota: { share: 0.5 },
    publishers: ['away', 'here'],
    registry: new Registry(),
    clock: { now: Date.now },
    logger: createLogger({ app: 'test', level: 'silent' }),
  });
  for (const publisher of ['away', 'here']) count(publisher, 1_000, 0);
  const error = new StorageUnavailable('It is away');
  const multi = Object.assign(store.redis.multi(), { exec: () => Promise.reject(error) });
  jest.spyOn(store.redis, 'time').mockRejectedValueOnce(error as never);
  jest.spyOn(store.redis, 'multi').mockReturnValueOnce(multi);
  await expect(service.start()).rejects.toBe(error);
  expect(await addPublisherUsage(store, 'away', 0, Date.now())).toBe(0);
  expect(await addPublisherUsage(store, 'here', 0, Date.now())).toBeGreaterThan(1_000);
});
