/** What a duty does for the other addresses of a partition where it fails for one. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { partitionOf, StorageUnavailable } from '@posthorn/core';
import { closingSubscriptions, deleteSubscription, laneLength, loadSubscriptions } from '@posthorn/store';
import { anna } from '../../../../packages/store/src/replays/test-replays.ts';
import { deliver, store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
import { closeDeleted } from './close-deleted.ts';
import type { DutyContext } from './duty.ts';
import { releaseAtRate, releaseParked } from './release-lanes.ts';
import { sendTrials } from './send-trials.ts';

const context = () => {
  const jobQueues = { remove: async () => [] };
  return { store, jobQueues, clock: { now: () => time.nowMs }, releasePerSecond: 50 } as unknown as DutyContext;
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

it('leaves the others to the next run where Redis is unavailable', async () => {
  const two = await twoAddresses();
  jest.spyOn(store.redis, 'smembers').mockResolvedValue([two.broken, two.other]);
  const add = jest.fn(async () => Promise.reject(new StorageUnavailable('away')));
  jest.spyOn(store.redis as unknown as { script_release: typeof add }, 'script_release').mockImplementation(add);
  await expect(releaseAtRate('held')(context()).run(two.partition)).rejects.toThrow('away');
  expect(add).toHaveBeenCalledTimes(1);
});
