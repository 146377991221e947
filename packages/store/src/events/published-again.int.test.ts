/** An event that is published again after its record has expired, while a delivery of it is still there. */
import { describe, expect, it } from '@jest/globals';
import { type CameBack, DAY_MS, DELIVERY_STATUSES, deliveryId, eventRef, partitionOf } from '@posthorn/core';
import { jobIdOf } from '@posthorn/testing';
import {
  changeSubscription,
  createDeliveries,
  endDeliveries,
  loadResponses,
  pruneFinished,
  pruneSucceeded,
  replayDelivery,
  storeEvent,
} from '../index.ts';
import {
  byStatusKey,
  deliveryKey,
  eventKey,
  failedKey,
  LANES,
  laneKey,
  prefixOfSubscription,
  queueKey,
  succeededKey,
} from '../keys.ts';
import { isReplayed } from '../replays/replays.ts';
import {
  attempt,
  begin,
  deliver,
  event,
  failure,
  loadOne,
  park,
  release,
  store,
  subscribe,
  time,
} from '../test-deliveries.ts';
import { RETENTION } from '../test-store.ts';
import { prefixOfEvent } from './events.ts';

const cameBack: CameBack = { response: { headers: {}, body: 'old', isBodyTruncated: false }, connection: null };
/** No joint record, which would expire with its delivery. */
const sent = () => event({ id: 'order-1' });
const ref = eventRef({ id: 'order-1', environment: 'sandbox' });
const set = (id: string, status: 'active' | 'paused') => changeSubscription(store, id, (now) => ({ ...now, status }));

/** What may have become of a delivery whose event has expired. */
const fates: Record<string, (job: Parameters<typeof park>[0]) => Promise<unknown>> = {
  pending: () => Promise.resolve(),
  'waiting for a retry': ({ deliveryId: id }) =>
    attempt(id, 1, { kind: 'retry', nextAttemptAtMs: time.nowMs + 60_000 }, 20, cameBack),
  async held(job) {
    await set(job.subscriptionId, 'paused');
    await begin(job);
    await set(job.subscriptionId, 'active');
  },
  parked: (job) => park(job),
  overdue: (job) => park(job, time.nowMs, time.nowMs + 1),
  async released(job) {
    await park(job);
    await release('parked', job.subscriptionId, 1);
  },
  failed: ({ deliveryId: id }) => attempt(id, 1, failure, 20, cameBack),
  async replayed({ deliveryId: id }) {
    await attempt(id, 1, failure);
    expect(await replayDelivery(store, await loadOne(id), time.nowMs, 'test')).toHaveProperty('deliveryId');
    expect(await isReplayed(store, await loadOne(id))).toBe(true);
  },
  succeeded: ({ deliveryId: id }) => attempt(id, 1, { kind: 'succeeded' }),
};
/** Who makes the new delivery. */
const makers = {
  'with the event': async (stored: Parameters<typeof storeEvent>[1]) => {
    const result = await storeEvent(store, stored, { withDeliveries: true });
    return 'created' in result ? result.created : [];
  },
  'after the event': async (stored: Parameters<typeof storeEvent>[1]) => {
    await storeEvent(store, stored);
    return await createDeliveries(store, stored);
  },
};

describe.each(Object.entries(makers))('a delivery made %s', (_who, make) => {
  it.each(Object.entries(fates))('replaces one that is %s', async (_what, befall) => {
    const { id } = await subscribe();
    const prefix = prefixOfSubscription(store, id);
    const old = deliveryId(ref, id);
    await deliver([id], sent());
    await befall({ deliveryId: old, generation: 0, subscriptionId: id, event: ref });
    await store.redis.del(eventKey(prefixOfEvent(store, ref), ref));
    time.nowMs += RETENTION;
    const stored = { ref, event: sent(), acceptedAtMs: time.nowMs, subscriptionIds: [id] };
    expect(await make(stored)).toEqual([{ deliveryId: old, subscriptionId: id, state: 'pending' }]);

    const made = await loadOne(old);
    expect(made).toMatchObject({
      status: 'pending',
      attemptCount: 0,
      createdAtMs: time.nowMs,
      nextAttemptAtMs: null,
      finishedAtMs: null,
      failureReason: null,
    });
    expect(await store.redis.pexpiretime(deliveryKey(prefix, old))).toBe(-1);
    expect((await loadResponses(store, old)).size).toBe(0);
    // Otherwise no bulk replay would include it, should it fail.
    expect(await isReplayed(store, made)).toBe(false);
    const indexes = [...DELIVERY_STATUSES.map((status) => byStatusKey(prefix, status)), failedKey(prefix, id)];
    const keys = [...indexes, ...LANES.map((lane) => laneKey(prefix, lane, id))];
    const scores = await Promise.all(keys.map((key) => store.redis.zscore(key, old)));
    expect(keys.filter((_, i) => scores[i] !== null)).toEqual([byStatusKey(prefix, 'pending')]);
    // Its job waits once, and no other one does anything.
    const waiting = await store.redis.lrange(queueKey(prefix, 'wait'), 0, -1);
    expect(waiting.filter((jobId) => jobId === jobIdOf({ ...made, deliveryId: old }))).toHaveLength(1);
    expect(await store.redis.zcard(queueKey(prefix, 'delayed'))).toBe(0);
    const older = { deliveryId: old, generation: made.generation - 1, subscriptionId: id };
    expect(await begin(older)).toEqual({ kind: 'superseded' });
    expect(await begin({ ...older, generation: made.generation })).toMatchObject({ kind: 'attempt', attemptNumber: 1 });
    const partition = partitionOf(id, store.partitions);
    const ending = { partition, deliveries: [{ id: old, event: ref }], reason: 'expired' as const, nowMs: time.nowMs };
    expect(await endDeliveries(store, { ...ending, generation: older.generation })).toBe(0);
    // As if the call was sent again, or the fan-out was finished by another process.
    expect(await createDeliveries(store, stored)).toMatchObject([{ state: 'without_first_job' }]);
    expect(await loadOne(old)).toEqual(made);
  });
});

it('the entry of an expired delivery is pruned though another one has its id by now', async () => {
  const { id } = await subscribe();
  const prefix = prefixOfSubscription(store, id);
  const old = deliveryId(ref, id);
  for (const verdict of [failure, { kind: 'succeeded' } as const]) {
    await deliver([id], sent());
    await attempt(old, 1, verdict);
    await store.redis.del(eventKey(prefixOfEvent(store, ref), ref), deliveryKey(prefix, old));
    time.nowMs += RETENTION + DAY_MS;
  }
  await deliver([id], sent());
  const range = { beforeMs: time.nowMs - 1, maxChunks: 1, maxKept: 1 };
  const partition = partitionOf(id, store.partitions);
  await pruneFinished(store, partition, 'failed', range);
  await pruneSucceeded(store, partition, range);
  const left = [await store.redis.zcard(byStatusKey(prefix, 'failed')), await store.redis.xlen(succeededKey(prefix))];
  expect(left).toEqual([0, 0]);
  expect(await store.redis.zcard(byStatusKey(prefix, 'pending'))).toBe(1);
});
