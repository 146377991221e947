/** Counts what is stored, from the sizes of indexes alone. */
import { DELIVERY_STATUSES, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import { subscriptionsKeys } from '../keys.ts';
import { runScript } from '../scripts.ts';
import { readPartitions, type Store, sumPartitions } from '../store.ts';
import { countFailing } from '../subscriptions/health.ts';
import { countStatus } from './sources.ts';

/**
 * The numbers of deliveries and subscriptions by status, and the age of the oldest pending delivery. Reads counts only,
 * whatever the volume.
 */
export async function countStored(store: Store, nowMs: number) {
  const [deliveries, subscriptions, failingAddresses, oldestMs] = await Promise.all([
    countEach(store, DELIVERY_STATUSES, (prefix, status) => countStatus(store, prefix, status)),
    countEach(store, SUBSCRIPTION_STATUSES, async (prefix, status) => {
      const sizes = await Promise.all(subscriptionsKeys(prefix, status).map((key) => store.redis.zcard(key)));
      return sizes.reduce((sum, size) => sum + size, 0);
    }),
    countFailing(store),
    oldestPending(store),
  ]);
  return {
    deliveries,
    subscriptions,
    failingAddresses,
    oldestPendingAgeMs: oldestMs === undefined ? 0 : Math.max(0, nowMs - oldestMs),
  };
}

/** Since when the oldest pending delivery waits, or undefined where there is none. */
async function oldestPending(store: Store): Promise<number | undefined> {
  const times = await readPartitions(store, (prefix) => runScript(store, 'findOldestPending', prefix, {}));
  return times.length === 0 ? undefined : Math.min(...times);
}

async function countEach<S extends string>(
  store: Store,
  statuses: readonly S[],
  countIn: (prefix: string, status: S) => Promise<number>,
): Promise<Record<S, number>> {
  const counts = await Promise.all(
    statuses.map(async (status) => {
      const count = await sumPartitions(store, (prefix) => countIn(prefix, status));
      return [status, count] as const;
    }),
  );
  return Object.fromEntries(counts) as Record<S, number>;
}
