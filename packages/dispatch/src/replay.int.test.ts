/** A replay and its first job, on a real Redis. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { FIRST_JOB_LUA } from '@posthorn/queue';
import { openStore, partitionPrefix, replayDelivery } from '@posthorn/store';
import { testRedisUrl } from '@posthorn/testing';
import { loadOne, store, subscribe, time } from '../../store/src/test-deliveries.ts';
import { failed } from '../../store/src/test-replays.ts';
import { RETENTION } from '../../store/src/test-store.ts';

it('has its job in the queue as soon as it is made, and none if it is refused', async () => {
  const { id } = await subscribe();
  const settings = { REDIS_URL: testRedisUrl(), KEY_PREFIX: store.prefix, PARTITIONS: 4, RETENTION };
  const storage = openStore(settings, { onError: (error) => Promise.reject(error), firstJobLua: FIRST_JOB_LUA });
  await storage.start();
  try {
    const source = await loadOne(await failed(id));
    const made = await replayDelivery(storage.store, source, time.nowMs, { operator: 'anna' });
    if ('refused' in made) throw new Error(made.refused);
    const waiting = () => store.redis.lrange(`${partitionPrefix(store, partitionOf(id, 4))}:deliveries:wait`, 0, -1);
    expect(await waiting()).toEqual([made.deliveryId]);
    expect(
      await replayDelivery(storage.store, await loadOne(made.deliveryId), time.nowMs, { operator: 'anna' }),
    ).toEqual({
      refused: 'not_failed',
    });
    expect(await waiting()).toEqual([made.deliveryId]);
  } finally {
    await storage.stop();
  }
});
