/** Maintenance of the stored data: leases, pruning, lost jobs, deleted subscriptions. The loop that calls it is the worker's. */
import { type DeliveryJob, type DeliveryStatus, isFinished, partitionOf } from '@posthorn/core';
import { keptWhileUnfinishedMs, loadDeliveries, type StoredDelivery } from './delivery-record.ts';
import {
  byStatusKey,
  bySubscriptionKey,
  closingKey,
  LANES,
  laneIndexKey,
  laneKey,
  maintenanceKey,
  notifierKey,
  partitionPrefix,
  prefixOfSubscription,
  subscriptionKey,
} from './keys.ts';
import { endDeliveries } from './lanes.ts';
import { runScript } from './scripts.ts';
import type { Store } from './store.ts';

/** Work that one process at a time does in a partition; two at once would do harmless double work. */
export type Duty = 'maintenance' | 'notifier';
const dutyKeys = { maintenance: maintenanceKey, notifier: notifierKey } as const;

/** Acquires or extends the lease for a duty in a partition for `lifeMs`. Returns whether `holder` has it. */
export async function holdLease(
  store: Store,
  duty: Duty,
  partition: number,
  holder: string,
  lifeMs: number,
): Promise<boolean> {
  const prefix = partitionPrefix(store, partition);
  return await runScript(store, 'lease', prefix, { key: dutyKeys[duty](prefix), holder, lifeMs });
}

/** Releases a lease early, so that another process need not wait for its end. */
export async function giveUpLease(store: Store, duty: Duty, partition: number, holder: string): Promise<void> {
  const key = dutyKeys[duty](partitionPrefix(store, partition));
  if ((await store.redis.get(key)) === holder) await store.redis.del(key);
}

/**
 * Removes from an index of a partition's deliveries the entries whose record has expired. Checks those made before `beforeMs`,
 * from `offset` on. Returns the offset to continue at, or undefined at the end.
 */
export async function pruneIndex(
  store: Store,
  partition: number,
  key: string,
  beforeMs: number,
  offset: number,
): Promise<number | undefined> {
  const limit = 500;
  const values = { key, beforeMs, offset, limit };
  const { lookedAt, removed } = await runScript(store, 'pruneIndex', partitionPrefix(store, partition), values);
  return lookedAt < limit ? undefined : offset + lookedAt - removed;
}

/** The same for the index of a final status. */
export async function pruneFinished(
  store: Store,
  partition: number,
  status: 'succeeded' | 'failed',
  beforeMs: number,
  offset: number,
): Promise<number | undefined> {
  return await pruneIndex(store, partition, byStatusKey(partitionPrefix(store, partition), status), beforeMs, offset);
}

/** Held deliveries of a partition made before `beforeMs`, oldest first. */
export async function heldBefore(
  store: Store,
  partition: number,
  beforeMs: number,
  limit: number,
): Promise<StoredDelivery[]> {
  const key = byStatusKey(partitionPrefix(store, partition), 'held');
  const ids = await store.redis.zrangebyscore(key, '-inf', beforeMs, 'LIMIT', 0, limit);
  return (await loadDeliveries(store, ids)).filter((delivery) => delivery !== undefined);
}

/**
 * A chunk of the deliveries that should have a job: `pending` or `waiting_for_retry`, made before `beforeMs`, in no lane.
 * `next` is where the following chunk begins, undefined at the end.
 */
export async function expectedJobs(
  store: Store,
  partition: number,
  status: Extract<DeliveryStatus, 'pending' | 'waiting_for_retry'>,
  beforeMs: number,
  offset: number,
  limit: number,
): Promise<{ jobs: DeliveryJob[]; next: number | undefined }> {
  const prefix = partitionPrefix(store, partition);
  const ids = await store.redis.zrangebyscore(byStatusKey(prefix, status), '-inf', beforeMs, 'LIMIT', offset, limit);
  const deliveries = (await loadDeliveries(store, ids)).filter((delivery) => delivery !== undefined);
  const isInLane = await Promise.all(
    deliveries.map(async ({ id, subscriptionId }) => {
      const scores = (['parked', 'overdue'] as const).map((lane) =>
        store.redis.zscore(laneKey(prefix, lane, subscriptionId), id),
      );
      return (await Promise.all(scores)).some((score) => score !== null);
    }),
  );
  const jobs = deliveries
    .filter((delivery, i) => !isInLane[i] && delivery.status === status)
    .map(({ id, generation, subscriptionId, event }) => ({ deliveryId: id, generation, subscriptionId, event }));
  return { jobs, next: ids.length < limit ? undefined : offset + limit };
}

/** Subscriptions of a partition that were deleted and still have something to clear. */
export async function closingSubscriptions(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(closingKey(partitionPrefix(store, partition)));
}

/**
 * Ends the unfinished deliveries of a deleted subscription and clears away what is left of it; `removeJobs` is given the jobs
 * they had. May be repeated, and done by several at once.
 */
export async function closeSubscription(
  store: Store,
  subscriptionId: string,
  nowMs: number,
  removeJobs: (partition: number, jobs: Pick<DeliveryJob, 'deliveryId' | 'generation'>[]) => Promise<void>,
): Promise<void> {
  const partition = partitionOf(subscriptionId, store.partitions);
  for await (const deliveries of unfinishedDeliveries(store, subscriptionId)) {
    await removeJobs(partition, await endDeliveries(store, partition, deliveries, 'subscription_deleted', nowMs));
  }
  await clearDeletedSubscription(store, subscriptionId);
}

/** The unfinished deliveries of a subscription, newest first, chunk by chunk through all it has. */
async function* unfinishedDeliveries(store: Store, subscriptionId: string): AsyncGenerator<StoredDelivery[]> {
  const key = bySubscriptionKey(prefixOfSubscription(store, subscriptionId), subscriptionId);
  for (let start = '+'; ; ) {
    const entries = await store.redis.xrevrange(key, start, '-', 'COUNT', 500);
    const last = entries.at(-1);
    if (!last) return;
    start = `(${last[0]}`;
    const deliveries = await loadDeliveries(
      store,
      entries.map(([, fields]) => fields[1]!),
    );
    const unfinished = deliveries.filter((delivery) => delivery !== undefined && !isFinished(delivery.status));
    if (unfinished.length > 0) yield unfinished as StoredDelivery[];
  }
}

/** Clears away a deleted subscription whose deliveries have all ended. What retention keeps of them expires by itself. */
async function clearDeletedSubscription(store: Store, subscriptionId: string): Promise<void> {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const clearing = store.redis.multi();
  for (const lane of LANES) clearing.srem(laneIndexKey(prefix, lane), subscriptionId);
  await clearing
    .del(...LANES.map((lane) => laneKey(prefix, lane, subscriptionId)))
    .del(subscriptionKey(prefix, subscriptionId))
    .srem(closingKey(prefix), subscriptionId)
    // Its deliveries have ended and outlive the retention by no more than this.
    .pexpire(bySubscriptionKey(prefix, subscriptionId), keptWhileUnfinishedMs(store))
    .exec();
}
