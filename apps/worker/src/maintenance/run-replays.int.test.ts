/** The duty that works through bulk replays: how much a run does, and what one that fails does to the others. */
import { expect, it, jest } from '@jest/globals';
import { PartitionUnavailable, partitionOf } from '@posthorn/core';
import type { JobQueues } from '@posthorn/queue';
import { activeReplays, listReplays, loadReplays, startBatch } from '@posthorn/store';
import { failed, ofAll, start } from '../../../../packages/store/src/replays/test-replays.ts';
import { store, subscribe, subscriptionIdIn, time } from '../../../../packages/store/src/test-deliveries.ts';
import type { DutyContext } from './duty.ts';
import { runReplays } from './run-replays.ts';

const duty = () =>
  runReplays({ store, jobQueues: undefined as unknown as JobQueues, clock: { now: () => time.nowMs } } as DutyContext);

it('does at most 20 steps in a run, however many there are, and the others in the next ones', async () => {
  const { id } = await subscribe();
  const partition = partitionOf(id, store.partitions);
  for (let i = 0; i < 30; i++) await start(id);
  const active = async () => (await activeReplays(store, partition, 100)).length;
  await duty().run(partition);
  expect(await active()).toBe(10);
  await duty().run(partition);
  expect(await active()).toBe(0);
});

it('goes on with the others while canaries have no verdict, however many they are', async () => {
  const addWithFailed = async () => {
    const { id } = await subscribe({ id: subscriptionIdIn(0) });
    for (let i = 0; i < 6; i++) await failed(id);
    return id;
  };
  for (let i = 0; i < 21; i++) await start(await addWithFailed(), { canary: true });
  await duty().run(0);
  await duty().run(0);
  const plain = await start(await addWithFailed());
  // It is looked at last.
  const sample = store.redis.srandmember.bind(store.redis);
  jest.spyOn(store.redis, 'srandmember').mockImplementation(async (key, count) => {
    const found = (await sample(key, Number(count))).filter((id) => id !== plain);
    return String(key).endsWith(':replays_active') ? [...found, plain].slice(0, Number(count)) : found;
  });
  await duty().run(0);
  jest.restoreAllMocks();
  expect((await loadReplays(store, [plain]))[0]).toMatchObject({ status: 'done', replayed: 6 });
  expect(await activeReplays(store, 0, 100)).toHaveLength(21);
});

it('goes on with the others where one fails, and then fails', async () => {
  const { id } = await subscribe();
  await failed(id);
  const partition = partitionOf(id, store.partitions);
  const [broken, other] = [await start(id), await start(id)];
  const key = `${store.prefix}:{${partition}}:replay:${broken}`;
  await store.redis.rename(key, `${key}_kept`);
  await store.redis.set(key, 'wrong');
  await expect(duty().run(partition)).rejects.toThrow('WRONGTYPE');
  expect((await loadReplays(store, [other]))[0]).toMatchObject({ status: 'done', replayed: 1 });
});

it('goes on with the others where the partition of one address of a batch is unavailable', async () => {
  const subscriptionIds = [0, 1, 0].map(subscriptionIdIn);
  for (const id of subscriptionIds) await subscribe({ id });
  const read = store.redis.hgetall.bind(store.redis);
  const spy = jest.spyOn(store.redis, 'hgetall').mockImplementation(async (key) => {
    if (String(key).includes('{1}:replay:')) throw new PartitionUnavailable('away');
    return await read(key);
  });
  // Maintenance starts the other one: an operator who repeated the call would start another batch.
  const batch = await startBatch(store, { ...ofAll, subscriptionIds }, time.nowMs, 'anna');
  expect(batch.members.map(({ subscriptionId }) => subscriptionId)).toEqual(subscriptionIds);
  const alone = await start(subscriptionIds[0]!);
  await expect(duty().run(0)).rejects.toThrow('away');
  spy.mockRestore();
  expect((await loadReplays(store, [alone]))[0]).toMatchObject({ status: 'done' });
  const listed = await Promise.all(
    subscriptionIds.map((id) => listReplays(store, { subscriptionId: id }, { limit: 5 })),
  );
  expect(listed.map(({ items }) => items.map(({ status }) => status))).toEqual([['done', 'done'], [], ['done']]);
  await duty().run(0);
  expect((await listReplays(store, { subscriptionId: subscriptionIds[1]! }, { limit: 5 })).items).toHaveLength(1);
});
