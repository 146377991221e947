/** For tests: a separate store on a real Redis. */
import { DAY_MS } from '@posthorn/core';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { openStore } from './open-store.ts';
import type { Store } from './store.ts';

export const RETENTION = 30 * DAY_MS;
export const RETENTION_SUCCEEDED = 7 * DAY_MS;

/** A store with a prefix of its own; `close` removes its keys. An error of its connection fails the process. */
export async function openTestStore(partitions: number): Promise<{ store: Store; close: () => Promise<void> }> {
  const opened = openStore(
    { REDIS_URL: testRedisUrl(), KEY_PREFIX: testPrefix(), PARTITIONS: partitions, RETENTION, RETENTION_SUCCEEDED },
    {
      onError(error) {
        throw error;
      },
    },
  );
  await opened.start();
  const { store } = opened;
  return {
    store,
    async close() {
      const keys = await store.redis.keys(`${store.prefix}:*`);
      if (keys.length > 0) await store.redis.del(keys);
      await opened.stop();
    },
  };
}
