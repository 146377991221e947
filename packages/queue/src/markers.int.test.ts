/** What becomes of a marker that a process has popped and can't use. */
import { afterEach, expect, it } from '@jest/globals';
import { testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { createMarkers } from './markers.ts';
import { Partitions } from './partitions.ts';

const redis = new Redis(testRedisUrl(), { lazyConnect: true });
const prefix = testPrefix();
const marker = `${prefix}:deliveries:marker`;
afterEach(async () => {
  await redis.del(marker);
  redis.disconnect();
});

it('is put back, and an earlier one that was set meanwhile stays', async () => {
  const partitions = new Partitions(1, 1);
  partitions.foundEmpty(partitions.all[0]!, undefined);
  const dueAtMs = Date.now() + 3_600_000;
  await redis.zadd(marker, dueAtMs + 60_000, '1');
  const changed = Promise.withResolvers<void>();
  const markers = createMarkers({
    redis,
    partitionPrefixes: [prefix],
    partitions,
    canTake() {
      // Now a retry becomes the next one.
      void redis.zadd(marker, dueAtMs, '1');
      return false;
    },
    look: async () => undefined,
    changed: changed.resolve,
    onError: changed.reject,
  });
  markers.wait();
  await changed.promise;
  markers.close();
  expect(await redis.zscore(marker, '1')).toBe(String(dueAtMs));
});
