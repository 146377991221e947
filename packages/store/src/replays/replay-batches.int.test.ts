/** Bulk replays of several addresses that are started and cancelled together, on a real Redis. */
import { describe, expect, it } from '@jest/globals';
import { newReplayBatchId, partitionOf, partitionOfId, type ReplayBatch } from '@posthorn/core';
import {
  activeBatches,
  activeReplays,
  cancelBatch,
  changeSubscription,
  clearDeletedSubscription,
  deleteSubscription,
  deletionOf,
  listAudit,
  listReplays,
  loadBatch,
  loadBatchReplays,
  loadReplays,
  startBatch,
  stepBatch,
} from '../index.ts';
import { store, subscribe, time } from '../test-deliveries.ts';
import { failed, ofAll, replaysIn, run } from './test-replays.ts';

const wanted = (subscriptionIds: string[], canary = false) => ({ ...ofAll, subscriptionIds, canary });
/** Addresses with two failed deliveries each; the first two are in different partitions. */
async function addresses(count: number): Promise<string[]> {
  const ids: string[] = [];
  const partition = (id: string) => partitionOf(id, store.partitions);
  while (ids.length < count) {
    const { id } = await subscribe();
    if (ids.length === 1 && partition(id) === partition(ids[0]!)) continue;
    await failed(id);
    await failed(id);
    ids.push(id);
  }
  time.nowMs += 1;
  return ids;
}
const memberIds = ({ members }: ReplayBatch) => members.map(({ replayId }) => replayId);
const statuses = async (batch: ReplayBatch) =>
  (await loadReplays(store, memberIds(batch))).map((replay) => replay?.status);
/** What a console leaves that dies after it has stored the batch and started the first `started` replays. */
async function interrupt(batch: ReplayBatch, started: number): Promise<void> {
  const prefix = (id: string) => `${store.prefix}:{${partitionOfId(id, store.partitions)}}`;
  for (const id of memberIds(batch).slice(started)) {
    await store.redis.del(`${prefix(id)}:replay:${id}`);
    await store.redis.srem(`${prefix(id)}:replays_active`, id);
    await store.redis.zrem(`${prefix(id)}:replays`, id);
  }
  await store.redis.hdel(`${prefix(batch.id)}:replay_batch:${batch.id}`, 'started');
  await store.redis.sadd(`${prefix(batch.id)}:replay_batches_active`, batch.id);
}
const active = async (batch: ReplayBatch) =>
  (await activeBatches(store, partitionOfId(batch.id, store.partitions))).includes(batch.id);

describe('a batch', () => {
  it('starts one replay for each address, which ends with its own outcome', async () => {
    const ids = await addresses(3);
    const batch = await startBatch(store, wanted(ids, true), time.nowMs, 'anna');
    expect(await loadBatch(store, batch.id)).toEqual(batch);
    expect(await active(batch)).toBe(false);
    const { replays, unstarted } = await loadBatchReplays(store, batch);
    expect(unstarted).toBe(0);
    expect(replays).toMatchObject(
      ids.map((subscriptionId) => ({
        subscriptionId,
        batchId: batch.id,
        total: 2,
        status: 'canary',
        operator: 'anna',
      })),
    );
    for (const id of memberIds(batch)) expect(await run(id)).toMatchObject({ status: 'done', replayed: 2 });
    for (const id of ids) expect((await replaysIn(id)).length).toBe(2);
  });
  it('is listed by its id, page by page, also with one of its addresses', async () => {
    const ids = await addresses(4);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    await startBatch(store, wanted(ids), time.nowMs, 'anna');
    const first = await listReplays(store, { batchId: batch.id }, { limit: 3 });
    const second = await listReplays(store, { batchId: batch.id }, { limit: 3, cursor: first.nextCursor! });
    expect(second.nextCursor).toBeNull();
    expect([...first.items, ...second.items].map(({ id }) => id).sort()).toEqual(memberIds(batch).sort());
    const one = await listReplays(store, { batchId: batch.id, subscriptionId: ids[1] }, { limit: 3 });
    expect(one.items.map(({ subscriptionId }) => subscriptionId)).toEqual([ids[1]]);
    expect((await listReplays(store, { batchId: newReplayBatchId(ids[0]!) }, { limit: 3 })).items).toEqual([]);
  });
  it.each([0, 1, 2])('whose console died after %d replays is started once by whoever repeats it', async (started) => {
    const ids = await addresses(3);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    for (const id of memberIds(batch).slice(0, started)) await run(id);
    await interrupt(batch, started);
    expect(await loadBatchReplays(store, batch)).toMatchObject({ unstarted: 3 - started });
    time.nowMs += 5_000;
    await Promise.all(Array.from({ length: 3 }, () => stepBatch(store, batch.id, time.nowMs)));
    expect(await active(batch)).toBe(false);
    for (const id of memberIds(batch))
      expect(await run(id)).toMatchObject({ status: 'done', replayed: 2, createdAtMs: batch.createdAtMs });
    for (const id of ids) expect((await replaysIn(id)).length).toBe(2);
  });
  it('goes on for an address that is paused or deleted after the start', async () => {
    const [paused = '', deleted = ''] = await addresses(2);
    const batch = await startBatch(store, wanted([paused, deleted]), time.nowMs, 'anna');
    await interrupt(batch, 0);
    await changeSubscription(store, paused, (now) => ({ ...now, status: 'paused' }));
    await deleteSubscription(store, deleted, time.nowMs, { operator: 'anna' });
    await stepBatch(store, batch.id, time.nowMs);
    const [ofPaused = '', ofDeleted = ''] = memberIds(batch);
    expect(await run(ofPaused)).toMatchObject({ status: 'done', replayed: 2, outcome: { waiting: 2 } });
    expect((await replaysIn(paused)).map(({ status }) => status)).toEqual(['held', 'held']);
    // Also if another one is created under its key before the first step.
    await clearDeletedSubscription(store, deleted, await deletionOf(store, deleted));
    await subscribe({ id: deleted });
    expect(await run(ofDeleted)).toMatchObject({ status: 'failed', replayed: 0 });
  });
});

describe('the cancellation of a batch', () => {
  it('cancels each replay that can be, and is in the audit trail', async () => {
    const ids = await addresses(2);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    await run(memberIds(batch)[0]!);
    expect(await cancelBatch(store, batch.id, time.nowMs, 'berta')).toBe(true);
    expect(await statuses(batch)).toEqual(['cancelled', 'cancelled']);
    expect(await active(batch)).toBe(false);
    expect(await loadBatch(store, batch.id)).toMatchObject({ cancellation: { operator: 'berta' } });
    const filter = { action: 'replay.cancelled', subscriptionId: ids[1] } as const;
    const { items } = await listAudit(store, filter, { limit: 5 }, time.nowMs);
    expect(items).toMatchObject([{ operator: 'berta', replayId: memberIds(batch)[1] }]);
    expect(await cancelBatch(store, newReplayBatchId(ids[0]!), time.nowMs, 'berta')).toBe(false);
  });
  it('keeps what is not started from starting, whatever a process does that read the batch before', async () => {
    const ids = await addresses(2);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    await interrupt(batch, 1);
    await cancelBatch(store, batch.id, time.nowMs, 'berta');
    expect(await statuses(batch)).toEqual(['cancelled', 'cancelled']);
    await stepBatch(store, batch.id, time.nowMs);
    const [, second = ''] = memberIds(batch);
    expect(await run(second)).toMatchObject({ status: 'cancelled', replayed: 0, outcome: { waiting: 0 } });
    expect(await replaysIn(ids[1]!)).toEqual([]);
    expect(await activeReplays(store, partitionOf(ids[1]!, store.partitions), 20)).not.toContain(second);
  });
  it('does not bring back a replay that has expired', async () => {
    const ids = await addresses(2);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    const [first = '', second = ''] = memberIds(batch);
    await run(first);
    await store.redis.del(`${store.prefix}:{${partitionOfId(first, store.partitions)}}:replay:${first}`);
    await cancelBatch(store, batch.id, time.nowMs, 'berta');
    expect(await loadReplays(store, [first, second])).toMatchObject([undefined, { status: 'cancelled' }]);
    expect(await active(batch)).toBe(false);
  });
  it('repeated after its replays have expired brings none back, also if the first one came before all were started', async () => {
    const batch = await startBatch(store, wanted(await addresses(2)), time.nowMs, 'anna');
    await interrupt(batch, 1);
    await cancelBatch(store, batch.id, time.nowMs, 'berta');
    for (const id of memberIds(batch))
      await store.redis.del(`${store.prefix}:{${partitionOfId(id, store.partitions)}}:replay:${id}`);
    expect(await cancelBatch(store, batch.id, time.nowMs, 'berta')).toBe(true);
    expect(await statuses(batch)).toEqual([undefined, undefined]);
  });
  it('is carried out by maintenance if its console died before', async () => {
    const ids = await addresses(2);
    const batch = await startBatch(store, wanted(ids), time.nowMs, 'anna');
    const key = `${store.prefix}:{${partitionOfId(batch.id, store.partitions)}}:replay_batch:${batch.id}`;
    await store.redis.hset(key, 'cancellation', JSON.stringify({ atMs: time.nowMs, operator: 'berta' }));
    await interrupt(batch, 2);
    await stepBatch(store, batch.id, time.nowMs);
    expect(await statuses(batch)).toEqual(['cancelled', 'cancelled']);
    expect(await active(batch)).toBe(false);
  });
});
