/** The duty that removes index entries of expired deliveries: how much a run does. */
import { expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { partitionPrefix } from '@posthorn/store';
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
  const [made] = await deliver([subscriptionId]);
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
