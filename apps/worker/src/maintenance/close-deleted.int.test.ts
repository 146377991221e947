/** How much a run does for deleted subscriptions, and that the next one goes on. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { closingSubscriptions, deleteSubscription, loadDeliveries, partitionPrefix } from '@posthorn/store';
import { anna } from '../../../../packages/store/src/replays/test-replays.ts';
import { deliver, store, subscribe, subscriptionIdIn, time } from '../../../../packages/store/src/test-deliveries.ts';
import { closeDeleted } from './close-deleted.ts';
import type { DutyContext } from './duty.ts';

const COST_PER_RUN = 200;

afterEach(() => void jest.restoreAllMocks());

function newDuty() {
  return closeDeleted({ store, clock: { now: () => time.nowMs } } as unknown as DutyContext);
}

/** Stores a subscription of partition 0 with deliveries, and deletes it. Returns the deliveries' ids. */
async function deleted(deliveries: number): Promise<string[]> {
  const { id } = await subscribe({ id: subscriptionIdIn(0) });
  const made = await Promise.all(Array.from({ length: deliveries }, () => deliver([id])));
  await deleteSubscription(store, id, time.nowMs, { operator: anna });
  return made.flat().map(({ deliveryId }) => deliveryId);
}

/** Fills an index with entries of other addresses, more than a run looks at. Returns the number of steps through it. */
async function fillIndex(status: 'held' | 'waiting_for_retry'): Promise<number> {
  const key = `${partitionPrefix(store, 0)}:by_status:${status}`;
  const pipeline = store.redis.pipeline();
  for (let chunk = 0; chunk < 240; chunk++)
    pipeline.zadd(key, ...Array.from({ length: 500 }, (_, i) => [0, `other_${chunk}_${i}`]).flat());
  await pipeline.exec();
  let steps = 0;
  let cursor = '0';
  do {
    [cursor] = await store.redis.zscan(key, cursor, 'COUNT', 500);
    steps += 1;
  } while (cursor !== '0');
  expect(steps).toBeGreaterThan(COST_PER_RUN);
  return steps;
}

async function unfinished(ids: readonly string[]): Promise<number> {
  return (await loadDeliveries(store, ids)).filter((delivery) => delivery?.status === 'pending').length;
}

it('is 200 steps at most, and the next run goes on', async () => {
  const ids = await deleted(1);
  // The held ones are looked at first.
  const steps = await fillIndex('held');
  const zscan = jest.spyOn(store.redis, 'zscan');
  const duty = newDuty();
  await duty.run(0);
  expect(zscan.mock.calls).toHaveLength(COST_PER_RUN);
  expect(await unfinished(ids)).toBe(1);
  while ((await closingSubscriptions(store, 0)).length > 0) await duty.run(0);
  expect(await unfinished(ids)).toBe(0);
  // One for each of the two other indexes.
  expect(zscan.mock.calls).toHaveLength(steps + 2);
});

it('is fewer steps where they end deliveries: one less for 50', async () => {
  const ids = await deleted(150);
  await fillIndex('waiting_for_retry');
  const zscan = jest.spyOn(store.redis, 'zscan');
  await newDuty().run(0);
  expect(await unfinished(ids)).toBe(0);
  expect(zscan.mock.calls).toHaveLength(COST_PER_RUN - 3);
});

it('is shared by the subscriptions in turns', async () => {
  await fillIndex('held');
  const [one, other] = [await deleted(1), await deleted(1)];
  const zscan = jest.spyOn(store.redis, 'zscan');
  await newDuty().run(0);
  const patterns = zscan.mock.calls.map((args: unknown[]) => String(args[3]));
  for (const [id = ''] of [one, other]) {
    expect(patterns.filter((pattern) => id.startsWith(pattern.slice(0, -1)))).toHaveLength(COST_PER_RUN / 2);
  }
});

it('begins again after an error', async () => {
  const ids = await deleted(3);
  const duty = newDuty();
  jest.spyOn(store.redis, 'zscan').mockRejectedValueOnce(new Error('refused'));
  await expect(duty.run(0)).rejects.toThrow('refused');
  await duty.run(0);
  expect(await unfinished(ids)).toBe(0);
});
