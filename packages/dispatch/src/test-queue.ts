/** For tests: a queue and a store under a key prefix of their own. */
import { eventRef, HOUR_MS } from '@posthorn/core';
import { createJobQueues } from '@posthorn/queue';
import { connectRedis, openStore } from '@posthorn/store';
import { testPrefix, testRedisUrl } from '@posthorn/testing';

/** Opens both on the Redis of the tests. `errors` collects what they report; `close` removes their keys. */
export async function openTestQueue(partitions: number) {
  const errors: string[] = [];
  const onError = ({ message }: Error) => errors.push(message);
  const settings = {
    REDIS_URL: testRedisUrl(),
    KEY_PREFIX: testPrefix(),
    PARTITIONS: partitions,
    RETENTION: HOUR_MS,
  };
  const storage = openStore(settings, { onError });
  await storage.start();
  const { store, partitionPrefixes: prefixes } = storage;
  const redis = connectRedis(settings);
  const jobQueues = createJobQueues({ redis, partitionPrefixes: prefixes, onError });
  return {
    store,
    redis,
    prefixes,
    jobQueues,
    errors,
    onError,
    async close(): Promise<void> {
      await jobQueues.close();
      await store.redis.del(await store.redis.keys(`${store.prefix}:*`));
      await storage.stop();
      redis.disconnect();
    },
  };
}

/** A job of partition 0. */
export const testJob = (deliveryId: string) => ({
  deliveryId,
  generation: 0,
  subscriptionId: 'sub',
  event: eventRef({ id: 'evt', environment: 'sandbox' }),
});
