/** The duty that works through bulk replays: how much a run does, and what one that fails does to the others. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import type { JobQueues } from '@posthorn/queue';
import { activeReplays, loadReplays } from '@posthorn/store';
import { failed, start } from '../../../../packages/store/src/replays/test-replays.ts';
import { store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
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
