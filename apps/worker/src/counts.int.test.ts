/** The counts of attempts, on a real Redis of which a part can be away. */
import { expect, it, jest } from '@jest/globals';
import { type Attempt, HEALTH_RUN, newSubscriptionId, partitionOf, StorageUnavailable } from '@posthorn/core';
import { systemClock } from '@posthorn/runtime';
import { newSubscription, openStore, readAttempts, readHealth, saveSubscription } from '@posthorn/store';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { createAttemptCounts } from './counts.ts';

const url = 'https://example.com/';
const idIn = (partition: number): string => {
  const id = newSubscriptionId();
  return partitionOf(id, 2) === partition ? id : idIn(partition);
};

it('are added once, however often another partition refuses its own', async () => {
  const onError = (error: Error) => {
    throw error;
  };
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: testPrefix(), PARTITIONS: 2, RETENTION: 60_000 };
  const storage = openStore(settings, { onError });
  await storage.start();
  const { store } = storage;
  const ids = [idIn(0), idIn(1)] as const;
  const nowMs = systemClock.now();
  for (const id of ids) {
    const fields = { id, url, eventTypes: 'all', environment: 'both', description: '', sealedSecret: '' } as const;
    await saveSubscription(store, newSubscription(fields, nowMs));
  }
  const counts = createAttemptCounts(store, systemClock);
  const made: Attempt = { number: 1, startedAtMs: nowMs, durationMs: 0, statusCode: 500, error: 'status' };
  for (const subscriptionId of ids) counts.attempted('dlv', { subscriptionId, url, createdAtMs: nowMs }, made, '500');
  const commands = store.redis as unknown as { script_addAddressCounts: (prefix: string) => Promise<unknown> };
  const add = commands.script_addAddressCounts.bind(store.redis);
  const spy = jest.spyOn(commands, 'script_addAddressCounts').mockImplementation(async (prefix, ...args) => {
    if (prefix.endsWith('{1}')) throw new StorageUnavailable('One node of the Cluster is away.');
    return await add(prefix, ...args);
  });
  for (let i = 0; i < HEALTH_RUN; i++) await expect(counts.flush()).rejects.toThrow(StorageUnavailable);
  spy.mockRestore();
  await counts.flush();
  expect(await readAttempts(store, 'hour', nowMs)).toMatchObject({ failed: 2 });
  expect(await readHealth(store, ids, nowMs)).toMatchObject([
    { state: 'healthy', failedInARow: 1 },
    { state: 'healthy', failedInARow: 1 },
  ]);
  for (const key of await store.redis.keys(`${store.prefix}:*`)) await store.redis.del(key);
  await storage.stop();
});
