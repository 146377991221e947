/** Test deliveries, on a real Redis. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { loadDeliveries, makeTestDelivery } from '../index.ts';
import { store, subscribe, time } from '../test-deliveries.ts';

it('has its event in the partition of its address, so that a test needs no other master of a Cluster', async () => {
  const context = { store, clock: { now: () => time.nowMs }, logger: { info() {}, warn() {} } };
  const request = { environment: undefined, operator: 'anna', trace: undefined };
  const found = [];
  // By chance, one in four would be there.
  for (let i = 0; i < 8; i++) {
    const subscription = await subscribe();
    const id = await makeTestDelivery(context, subscription, request, time.nowMs);
    const [delivery] = await loadDeliveries(store, [id]);
    const eventId = delivery!.event.slice(0, -2);
    found.push(partitionOf(eventId, store.partitions) === partitionOf(subscription.id, store.partitions));
  }
  expect(found).toEqual(Array(8).fill(true));
});
