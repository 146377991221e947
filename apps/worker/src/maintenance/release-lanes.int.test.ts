/** How fast deliveries leave their lanes, on a real Redis. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { laneLength } from '@posthorn/store';
import { deliver, store, subscribe, subscriptionIdIn, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { releaseAtRate, releaseParked } from './release-lanes.ts';

afterEach(() => void jest.restoreAllMocks());

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

/** Addresses of partition 0 that have a delivery in a lane each. */
async function addressesWith(lane: 'held' | 'overdue' | 'parked', count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { id } = await subscribe({ id: subscriptionIdIn(0) });
    const [made] = await deliver([id]);
    await store.redis.zadd(`${store.prefix}:{0}:${lane}:${id}`, time.nowMs, made!.deliveryId);
    await store.redis.sadd(`${store.prefix}:{0}:release_${lane}`, id);
  }
}

it('releases parked deliveries of at most 200 addresses in a run, as many in each of the four partitions', async () => {
  await addressesWith('parked', 60);
  const context = { store, clock: { now: () => time.nowMs } } as unknown as DutyContext;
  await releaseParked(context).run(0);
  expect(await store.redis.scard(`${store.prefix}:{0}:release_parked`)).toBe(10);
});

it.each(['held', 'overdue'] as const)('releases the %s deliveries of eight addresses with one script', async (lane) => {
  await addressesWith(lane, 20);
  const context = { store, clock: { now: () => time.nowMs }, releasePerSecond: 50 } as unknown as DutyContext;
  const release = jest.spyOn(store.redis as unknown as { script_release: () => void }, 'script_release');
  await releaseAtRate(lane)(context).run(0);
  expect(release).toHaveBeenCalledTimes(3);
  expect(await store.redis.exists(`${store.prefix}:{0}:release_${lane}`)).toBe(0);
});
