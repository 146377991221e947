/** What becomes of a marker that a process has popped and can't use, and of a wait that Redis ends. */
import { afterAll, afterEach, expect, it } from '@jest/globals';
import { eventually, testPrefix, testRedisUrl } from '@posthorn/testing';
import { Redis } from 'ioredis';
import { createMarkers } from './markers.ts';
import { Partitions } from './partitions.ts';

const prefix = testPrefix();
const redis = new Redis(testRedisUrl(), { lazyConnect: true, connectionName: prefix });
const marker = `${prefix}:deliveries:marker`;
afterEach(() => redis.del(marker));
afterAll(() => redis.disconnect());

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

it('are waited for again once Redis ends a wait, as at a planned failover: that is no error', async () => {
  const partitions = new Partitions(1, 1);
  partitions.foundEmpty(partitions.all[0]!, undefined);
  const errors: unknown[] = [];
  let waits = 0;
  const came = Promise.withResolvers<void>();
  const markers = createMarkers({
    redis,
    partitionPrefixes: [prefix],
    partitions,
    canTake: () => true,
    look: async () => undefined,
    changed() {
      waits += 1;
      if (partitions.all[0]!.state !== 'empty') came.resolve();
      markers.wait();
    },
    onError: (error) => errors.push(error),
  });
  markers.wait();
  await eventually('the wait to be ended', async () => {
    const clients = String(await redis.client('LIST')).split('\n');
    const own = clients.filter((line) => line.includes(`name=${prefix} `) && line.includes('flags=b '));
    for (const line of own) await redis.call('CLIENT', 'UNBLOCK', /\bid=(\d+)/.exec(line)![1]!, 'ERROR');
    return waits + errors.length > 0;
  });
  await redis.zadd(marker, 0, '0');
  await came.promise;
  markers.close();
  expect(errors).toEqual([]);
});
