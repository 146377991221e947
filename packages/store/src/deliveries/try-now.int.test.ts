/** Which jobs a try now leaves, on a real Redis. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { partitionOfId } from '@posthorn/core';
import { prefixOfSubscription, queueKey } from '../keys.ts';
import { attempt, deliver, loadOne, store, subscribe, time } from '../test-deliveries.ts';
import { takeFrom } from '../test-take.ts';
import { tryNow } from './try-now.ts';

let deliveryId: string;
let key: (name: string) => string;
beforeEach(async () => {
  const { id } = await subscribe();
  key = (name) => queueKey(prefixOfSubscription(store, id), name);
  deliveryId = (await deliver([id]))[0]!.deliveryId;
  await attempt(deliveryId, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 });
});
const waiting = () => store.redis.lrange(key('wait'), 0, -1);

describe('the job of the retry', () => {
  it.each(['delayed', 'prioritized'])('is removed if it is %s', async (state) => {
    await store.redis.lrem(key('wait'), 0, deliveryId);
    await store.redis.zadd(key(state), 1, deliveryId);
    expect(await tryNow(store, deliveryId, time.nowMs)).toBeUndefined();
    expect(await store.redis.zcard(key(state))).toBe(0);
    expect(await store.redis.exists(key(deliveryId))).toBe(0);
    expect(await waiting()).toEqual([`${deliveryId}.1`]);
    expect(await loadOne(deliveryId)).toMatchObject({ nextAttemptAtMs: time.nowMs, generation: 1 });
  });
  it('stays if the try now is refused', async () => {
    await store.redis.zadd(key('delayed'), 1, deliveryId);
    expect(await tryNow(store, deliveryId, time.nowMs + 60_000)).toBe('already_due');
    expect(await store.redis.zcard(key('delayed'))).toBe(1);
    expect(await waiting()).toEqual([deliveryId]);
  });
  it('stays the only one while a worker has it, although the time of the operator is from before it was due', async () => {
    const lock = { lockMs: 30_000, nowMs: time.nowMs + 60_000 };
    const partition = partitionOfId(deliveryId, store.partitions);
    expect(await takeFrom(store, { partition, token: 'worker', limit: 1 }, lock)).toHaveLength(1);
    expect(await tryNow(store, deliveryId, time.nowMs + 59_999)).toBe('already_due');
    expect(await waiting()).toEqual([]);
    expect(await loadOne(deliveryId)).toMatchObject({ nextAttemptAtMs: time.nowMs + 60_000 });
  });
});
