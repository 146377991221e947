/** Interrupted fan-outs are finished, on a real Redis. */
import { expect, it } from '@jest/globals';
import { deliveryId, eventRef, partitionOf } from '@posthorn/core';
import { interruptedFanOuts, loadDeliveries, storeEvent } from './index.ts';
import { finishFanOuts } from './make-deliveries.ts';
import { event, store, subscribe, time } from './test-deliveries.ts';

it('are finished where another one of the same sweep fails', async () => {
  const { id } = await subscribe();
  // In one partition the sweep takes them by the time of their acceptance.
  const ids = Array.from({ length: 50 }, (_, i) => `e${i}`).filter((eventId) => partitionOf(eventId, 4) === 0);
  const [broken, other] = ids.map((eventId) => {
    const sent = event({ id: eventId });
    return { ref: eventRef(sent), event: sent, acceptedAtMs: time.nowMs++, subscriptionIds: [id] };
  });
  for (const stored of [broken!, other!]) await storeEvent(store, stored);
  const [key] = await store.redis.keys(`${store.prefix}:*:event:${broken!.ref}`);
  await store.redis.del(key!);
  await store.redis.hset(key!, 'wrong', 1);
  const logger = { info() {}, warn() {} };
  const sweep = finishFanOuts({ store, logger }, time.nowMs + 60_000);
  await expect(sweep).rejects.toThrow('WRONGTYPE');
  expect(await interruptedFanOuts(store, time.nowMs, 10)).toEqual([broken!.ref]);
  expect(await loadDeliveries(store, [deliveryId(other!.ref, id)])).toMatchObject([{ status: 'pending' }]);
});
