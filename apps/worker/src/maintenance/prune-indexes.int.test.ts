/** The duty that removes index entries of expired deliveries: how much a run does. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { partitionPrefix, pruneFinished } from '@posthorn/store';
import { deliver, store, subscribe, time } from '../../../../packages/store/src/test-deliveries.ts';
import { RETENTION_SUCCEEDED } from '../../../../packages/store/src/test-store.ts';
import type { DutyContext } from './duty.ts';
import { pruneIndexes } from './prune-indexes.ts';

const streamOf = (partition: number) => `${partitionPrefix(store, partition)}:succeeded`;
const duty = () => pruneIndexes({ store, clock: { now: () => time.nowMs } } as DutyContext);

/** Adds entries older than the retention to the stream of the succeeded deliveries. */
async function succeededLongAgo(partition: number, ids: readonly string[]) {
  const ms = time.nowMs - RETENTION_SUCCEEDED - 1;
  const pipeline = store.redis.pipeline();
  for (const id of ids) pipeline.xadd(streamOf(partition), `${ms}-*`, 'd', id.slice('dlv_'.length), 'l', 0);
  await pipeline.exec();
}

it('removes in a run what a partition delivers in the 10 s between two runs, and far more', async () => {
  await succeededLongAgo(
    0,
    Array.from({ length: 30_000 }, (_, i) => `dlv_${i}`),
  );
  await duty().run(0);
  expect(await store.redis.xlen(streamOf(0))).toBe(0);
});

it('goes on in the next run after 10,000 that are kept', async () => {
  const { id: subscriptionId } = await subscribe();
  time.nowMs -= RETENTION_SUCCEEDED + 1;
  const [made] = await deliver([subscriptionId]);
  time.nowMs += RETENTION_SUCCEEDED + 1;
  const partition = partitionOf(subscriptionId, store.partitions);
  await succeededLongAgo(
    partition,
    Array.from({ length: 10_000 }, () => made!.deliveryId),
  );
  await succeededLongAgo(partition, ['dlv_gone']);
  const pruning = duty();
  await pruning.run(partition);
  expect(await store.redis.xlen(streamOf(partition))).toBe(10_001);
  await pruning.run(partition);
  expect(await store.redis.xlen(streamOf(partition))).toBe(10_000);
});

it('passes over the failed deliveries that are kept, chunk by chunk, up to those that are too new', async () => {
  const index = `${partitionPrefix(store, 0)}:by_status:failed`;
  const kept = Array.from({ length: 501 }, (_, i) => `dlv_kept-${String(i).padStart(4, '0')}`);
  const pipeline = store.redis.pipeline();
  for (const id of kept) pipeline.hset(`${partitionPrefix(store, 0)}:delivery:${id}`, 'st', 4).zadd(index, 1, id);
  await pipeline.zadd(index, 2, 'dlv_gone-1', 3, 'dlv_gone-2', 4, 'dlv_new').exec();
  const prune = (offset: number) =>
    pruneFinished(store, 0, 'failed', { beforeMs: 3, maxChunks: 1, maxKept: 10_000 }, offset);
  expect(await prune(0)).toBe(500);
  expect(await store.redis.zcard(index)).toBe(504);
  expect(await prune(500)).toBe(0);
  expect(await store.redis.zrange(index, 0, '-1')).toEqual([...kept, 'dlv_new']);
  expect(await prune(600)).toBe(0);
  await store.redis.zremrangebyscore(index, 0, 3);
  expect(await prune(0)).toBe(0);
  expect(await store.redis.zrange(index, 0, '-1')).toEqual(['dlv_new']);
});
