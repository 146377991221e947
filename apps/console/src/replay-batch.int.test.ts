/** What a start of a batch responds while Redis is unavailable. */
import { expect, it } from '@jest/globals';
import { newReplayBatchId, newReplayId, PartitionUnavailable } from '@posthorn/core';
import { ofAll } from '../../../packages/store/src/replays/test-replays.ts';
import { store, subscriptionIdIn } from '../../../packages/store/src/test-deliveries.ts';
import { serializeBatch, serializeStartedBatch } from './replay-batch.ts';

it('is the batch, whose replays maintenance starts', async () => {
  const members = [0, 1].map(subscriptionIdIn).map((id) => ({ subscriptionId: id, replayId: newReplayId(id) }));
  const id = newReplayBatchId(members[0]!.subscriptionId);
  const batch = { id, ...ofAll, toMs: 1, members, createdAtMs: 0, operator: 'anna', cancellation: null };
  const hgetall = () => Promise.reject(new PartitionUnavailable('away'));
  const away = { ...store, redis: Object.create(store.redis, { hgetall: { value: hgetall } }) as typeof store.redis };
  await expect(serializeBatch(away, batch)).rejects.toThrow('away');
  expect(await serializeStartedBatch(away, batch)).toMatchObject({ id, addresses: 2, status: 'running', replays: [] });
});
