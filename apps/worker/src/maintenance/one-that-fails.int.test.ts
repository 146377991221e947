/** What a duty does for the other addresses of a partition where it fails for one. */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type DeliveryStatus, partitionOf, StorageUnavailable } from '@posthorn/core';
import {
  changeSubscription,
  closingSubscriptions,
  deleteSubscription,
  laneLength,
  listDeliveries,
  loadSubscriptions,
} from '@posthorn/store';
import { anna } from '../../../../packages/store/src/replays/test-replays.ts';
import { deliver, store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
import { closeDeleted } from './close-deleted.ts';
import type { DutyContext } from './duty.ts';
import { expireHeld } from './expire-held.ts';
import { releaseAtRate, releaseParked } from './release-lanes.ts';
import { sendTrials } from './send-trials.ts';

const context = () => {
  const clock = { now: () => time.nowMs };
  return { store, clock, logger: { warn: () => undefined }, releasePerSecond: 50 } as unknown as DutyContext;
};

afterEach(() => void jest.restoreAllMocks());

/** Two addresses of one partition, and its number. */
async function twoAddresses() {
  const { id: broken } = await subscribe();
  const partition = partitionOf(broken, store.partitions);
  for (;;) {
    const { id: other } = await subscribe();
    if (partitionOf(other, store.partitions) === partition) return { broken, other, partition };
  }
}
type Two = Awaited<ReturnType<typeof twoAddresses>>;

/** Another program has overwritten a key of the address that comes first. */
async function breakFirst({ broken, other, partition }: Two, key: string): Promise<void> {
  await store.redis.set(`${store.prefix}:{${partition}}:${key}:${broken}`, 'wrong');
  jest.spyOn(store.redis, 'smembers').mockResolvedValueOnce([broken, other]);
  jest.spyOn(Math, 'random').mockReturnValueOnce(0);
}

it.each(['held', 'overdue', 'parked'] as const)('releases the %s deliveries of the others', async (lane) => {
  const two = await twoAddresses();
  const [made] = await deliver([two.other]);
  await store.redis.zadd(`${store.prefix}:{${two.partition}}:${lane}:${two.other}`, time.nowMs, made!.deliveryId);
  await breakFirst(two, lane);
  const duty = lane === 'parked' ? releaseParked : releaseAtRate(lane);
  await expect(duty(context()).run(two.partition)).rejects.toThrow('WRONGTYPE');
  expect(await laneLength(store, lane, two.other)).toBe(0);
});

it('ends the resume of the others', async () => {
  const two = await twoAddresses();
  const keyOf = (id: string) => `${store.prefix}:{${two.partition}}:subscription:${id}`;
  for (const id of [two.broken, two.other]) await store.redis.hset(keyOf(id), 'status', 'resuming');
  await breakFirst(two, 'held');
  await expect(sendTrials(context()).run(two.partition)).rejects.toThrow('WRONGTYPE');
  expect(await loadSubscriptions(store, [two.other])).toMatchObject([{ status: 'active', resuming: false }]);
});

it('clears what is left of the others that were deleted', async () => {
  const two = await twoAddresses();
  for (const id of [two.broken, two.other]) await deleteSubscription(store, id, time.nowMs, { operator: anna });
  await breakFirst(two, 'held');
  await expect(closeDeleted(context()).run(two.partition)).rejects.toThrow('WRONGTYPE');
  expect(await closingSubscriptions(store, two.partition)).toEqual([two.broken]);
});

describe('the end of held deliveries that are too old', () => {
  /** One held delivery of each address, the broken one first, as old as the retention. */
  async function heldForTooLong({ broken, other }: Two) {
    for (const id of [broken, other]) {
      await changeSubscription(store, id, (now) => ({ ...now, status: 'paused' }));
      await deliver([id]);
      time.nowMs += 1;
    }
    time.nowMs += store.retentionMs;
    return await idsOf('held');
  }
  const idsOf = async (status: DeliveryStatus) => {
    const { items } = await listDeliveries(store, { status }, { limit: 10, leaveOutUnreadable: true });
    return items.toReversed().map(({ id }) => id);
  };
  it.each(['of another type', 'without a readable time'])('comes for the others if a record is %s', async (what) => {
    const two = await twoAddresses();
    const [bad, good] = await heldForTooLong(two);
    const key = `${store.prefix}:{${two.partition}}:delivery:${bad}`;
    if (what === 'of another type') await store.redis.del(key).then(() => store.redis.set(key, 'wrong'));
    else await store.redis.hset(key, 'n', 1, 'a1', '!,7');
    await expect(expireHeld(context()).run(two.partition)).rejects.toThrow(
      `The record of delivery ${bad} can't be read`,
    );
    expect(await idsOf('failed')).toEqual([good]);
  });
  it('comes for the others if the lane of an address is of another type', async () => {
    const two = await twoAddresses();
    const both = await heldForTooLong(two);
    await store.redis.del(`${store.prefix}:{${two.partition}}:held:${two.broken}`);
    await store.redis.set(`${store.prefix}:{${two.partition}}:held:${two.broken}`, 'wrong');
    await expect(expireHeld(context()).run(two.partition)).rejects.toThrow('WRONGTYPE');
    expect(await idsOf('failed')).toEqual(both);
  });
  it("comes behind any number that can't be read, and takes those that are gone out of the count", async () => {
    const two = await twoAddresses();
    const [gone, good] = await heldForTooLong(two);
    const [home, index] = [`${store.prefix}:{${two.partition}}`, `${store.prefix}:{${two.partition}}:by_status:held`];
    await store.redis.del(`${home}:delivery:${gone}`);
    const broken = Array.from({ length: 501 }, (_, i) => `${gone!.slice(0, 10)}${i}`);
    const breaking = store.redis.pipeline();
    for (const id of broken) breaking.set(`${home}:delivery:${id}`, 'x').zadd(index, 1, id);
    await breaking.exec();
    await expect(expireHeld(context()).run(two.partition)).rejects.toThrow("can't be read");
    expect(await idsOf('failed')).toEqual([good]);
    await store.redis.zrem(index, ...broken);
    await expireHeld(context()).run(two.partition);
    expect(await store.redis.zcard(index)).toBe(0);
  });
});

it('leaves the others to the next run where Redis is unavailable', async () => {
  const two = await twoAddresses();
  jest.spyOn(store.redis, 'smembers').mockResolvedValue([two.broken, two.other]);
  const add = jest.fn(async () => Promise.reject(new StorageUnavailable('away')));
  jest.spyOn(store.redis as unknown as { script_release: typeof add }, 'script_release').mockImplementation(add);
  await expect(releaseAtRate('held')(context()).run(two.partition)).rejects.toThrow('away');
  expect(add).toHaveBeenCalledTimes(1);
});
