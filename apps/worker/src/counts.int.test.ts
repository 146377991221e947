/** The counts of attempts, on a real Redis of which a part can be away. */
import { expect, it, jest } from '@jest/globals';
import { type Attempt, HEALTH_RUN, partitionOf, StorageUnavailable } from '@posthorn/core';
import { readAddressAttempts, readAttempts, readHealth, type StoredSubscription } from '@posthorn/store';
import { store, subscribe, time } from '../../../packages/store/src/test-deliveries.ts';
import { createAttemptCounts } from './counts.ts';

async function subscribeIn(partition: number): Promise<StoredSubscription> {
  for (;;) {
    const one = await subscribe();
    if (partitionOf(one.id, store.partitions) === partition) return one;
  }
}

it('are added once, however often another partition refuses its own', async () => {
  const addresses = [await subscribeIn(0), await subscribeIn(1)] as const;
  const counts = createAttemptCounts(store, { now: () => time.nowMs });
  const made: Attempt = { number: 1, startedAtMs: time.nowMs, durationMs: 0, statusCode: 500, error: 'status' };
  for (const { id: subscriptionId, url } of addresses)
    counts.attempted('dlv_1', { subscriptionId, url, createdAtMs: time.nowMs }, made, '500');
  const commands = store.redis as unknown as { script_addAddressCounts: (prefix: string) => Promise<unknown> };
  const add = commands.script_addAddressCounts.bind(store.redis);
  const spy = jest.spyOn(commands, 'script_addAddressCounts').mockImplementation(async (prefix, ...args) => {
    if (prefix.endsWith('{1}')) throw new StorageUnavailable('One node of the Cluster is away.');
    return await add(prefix, ...args);
  });
  for (let i = 0; i < HEALTH_RUN; i++) {
    await counts.flush(0);
    await expect(counts.flush(1)).rejects.toThrow(StorageUnavailable);
  }
  spy.mockRestore();
  for (const partition of [0, 1]) await counts.flush(partition);
  expect(await readAttempts(store, 'hour', time.nowMs)).toMatchObject({ failed: 2 });
  const once = { state: 'healthy', failedInARow: 1 };
  const ids = addresses.map(({ id }) => id);
  expect(await readHealth(store, ids, time.nowMs)).toMatchObject([once, once]);
});

it('of an address include those of its earlier url, which leave its health alone', async () => {
  const { id: subscriptionId, url } = await subscribe();
  const counts = createAttemptCounts(store, { now: () => time.nowMs });
  const made: Attempt = { number: 1, startedAtMs: time.nowMs, durationMs: 0, statusCode: 500, error: 'status' };
  for (const to of ['https://earlier.example/', url, url])
    counts.attempted('dlv_1', { subscriptionId, url: to, createdAtMs: time.nowMs }, made, '500');
  for (let partition = 0; partition < store.partitions; partition++) await counts.flush(partition);
  expect(await readAttempts(store, 'hour', time.nowMs)).toMatchObject({ failed: 3 });
  expect(await readAddressAttempts(store, subscriptionId, time.nowMs)).toMatchObject({ failed: 3 });
  expect(await readHealth(store, [subscriptionId], time.nowMs)).toMatchObject([{ failedInARow: 2 }]);
});
