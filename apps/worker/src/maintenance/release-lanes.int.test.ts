/** How fast deliveries leave their lanes, on a real Redis. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { laneLength } from '@posthorn/store';
import { deliver, store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { releaseAtRate } from './release-lanes.ts';

it.each([1, 3, 50])('releases exactly %d a second to an address, in two runs', async (releasePerSecond) => {
  const { id } = await subscribe();
  const partition = partitionOf(id, store.partitions);
  const prefix = `${store.prefix}:{${partition}}`;
  for (let i = 0; i < 60; i++) {
    const [made] = await deliver([id]);
    await store.redis.zadd(`${prefix}:overdue:${id}`, time.nowMs + i, made!.deliveryId);
  }
  await store.redis.sadd(`${prefix}:release_overdue`, id);
  const context = { store, clock: { now: () => time.nowMs }, releasePerSecond } as unknown as DutyContext;
  const duty = releaseAtRate('overdue')(context);
  expect(duty.everyMs).toBe(500);
  for (let run = 0; run < 2; run++) await duty.run(partition);
  expect(60 - (await laneLength(store, 'overdue', id))).toBe(releasePerSecond);
});
