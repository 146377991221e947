/** The count of what a bulk replay covers, where the index has many deliveries that are no longer kept. */
import { describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/core';
import { countCovered, loadReplays } from '../index.ts';
import { deliver, store, subscribe, time } from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';
import { end, failed, ofAll, run, start } from './test-replays.ts';

/** An address that has failed deliveries older than the retention: the oldest are kept, the others are gone. */
async function withOld({ kept, gone }: { kept: number; gone: number }): Promise<string> {
  const { id } = await subscribe();
  const prefix = `${store.prefix}:{${partitionOf(id, store.partitions)}}`;
  const ids = Array.from({ length: kept + gone }, (_, i) => `dlv_old${i}`);
  const oldestMs = time.nowMs - RETENTION - ids.length;
  const entries = ids.flatMap((old, i) => [String(oldestMs + i - 1), old]);
  for (let i = 0; i < entries.length; i += 10_000)
    await store.redis.zadd(`${prefix}:failed:${id}`, ...entries.slice(i, i + 10_000));
  await Promise.all(ids.slice(0, kept).map((old) => store.redis.hset(`${prefix}:delivery:${old}`, 'st', '4')));
  return id;
}

describe('the count of failed deliveries', () => {
  it.each([
    { kept: 0, gone: 20_000, counted: 0 },
    { kept: 0, gone: 20_001, counted: 1 },
    { kept: 999, gone: 1, counted: 999 },
    { kept: 1_000, gone: 1, counted: 1_001 },
  ])('looks at 20,000 old ones, until 1,000 of them are kept: $kept kept, $gone gone', async ({ counted, ...old }) => {
    const subscriptionId = await withOld(old);
    const covered = await countCovered(store, { ...ofAll, subscriptionId }, time.nowMs);
    expect(covered).toEqual({ count: counted, isComplete: true });
  });
  it('is corrected by the end of the replay, which neither replays nor skips what is gone', async () => {
    const id = await withOld({ kept: 1_000, gone: 50 });
    await failed(id);
    const replayId = await start(id, { fromMs: time.nowMs - RETENTION - 51 });
    expect((await loadReplays(store, [replayId]))[0]).toMatchObject({ total: 51 });
    expect(await run(replayId)).toMatchObject({ status: 'done', total: 1, replayed: 1, skipped: 0 });
  });
  it('is corrected so with a filter, too', async () => {
    const id = await withOld({ kept: 1_000, gone: 50 });
    const [other] = await deliver([id]);
    await end(other!.deliveryId, { kind: 'failed', reason: 'status' });
    await failed(id);
    const filter = { eventType: null, error: 'timeout', failedFromMs: null, failedToMs: null } as const;
    const replay = await run(await start(id, { fromMs: time.nowMs - RETENTION - 51, filter }));
    expect(replay).toMatchObject({ total: 1, replayed: 1, skipped: 0 });
  });
});
