/** Reads the health of addresses, which workers keep with the counts of their attempts (stats.ts). */
import { type AddressError, type AddressHealth, HEALTH_MINUTES, MINUTE_MS } from '@posthorn/core';
import { decodeNamed, loadOthers, readNamed, type UnreadableRecord } from '../decode-named.ts';
import { laneLength } from '../deliveries/lanes.ts';
import { failingKey, healthKey, prefixOfSubscription, subscriptionKey, subscriptionsKey } from '../keys.ts';
import { highest, pairs } from '../lists/sorted-set.ts';
import { readPartitions, type Store, sumPartitions } from '../store.ts';

/** Paused addresses of a partition that are looked at for the oldest pause. */
const MAX_LOOKED_FOR_PAUSE = 100;

/** See `readLastOutcome`. */
export type LastOutcome = 'succeeded' | 'slow';

/** The health of addresses, in the order of their subscriptions' ids. */
export async function readHealth(
  store: Store,
  subscriptionIds: readonly string[],
  nowMs: number,
): Promise<AddressHealth[]> {
  return await Promise.all(
    subscriptionIds.map(async (id) => {
      const key = healthKey(prefixOfSubscription(store, id), id);
      const record = await readNamed('health of', id, store.redis.hgetall(key));
      return decodeNamed('health of', id, () => decodeHealth(record, nowMs));
    }),
  );
}

/**
 * How the last attempts to an address ended, of all workers. `slow`: those that were reported last took more than
 * `slowMs` on average, whether they failed or not. Undefined if they failed soon, or none was made.
 */
export async function readLastOutcome(
  store: Store,
  subscriptionId: string,
  slowMs: number,
): Promise<LastOutcome | undefined> {
  const key = healthKey(prefixOfSubscription(store, subscriptionId), subscriptionId);
  const [meanMs, since, failedInARow, lastSucceeded] = await store.redis.hmget(key, 'm', 'since', 'q', 'ls');
  if (Number(meanMs) > slowMs) return 'slow';
  return lastSucceeded && !since && Number(failedInARow) === 0 ? 'succeeded' : undefined;
}

/** The number of failing addresses. */
export async function countFailing(store: Store): Promise<number> {
  return await sumPartitions(store, (prefix) => store.redis.zcard(failingKey(prefix)));
}

/** The number of failing addresses whose failing period began at `fromMs` or later. */
export async function countFailingSince(store: Store, fromMs: number): Promise<number> {
  return await sumPartitions(store, (prefix) => store.redis.zcount(failingKey(prefix), fromMs, '+inf'));
}

/**
 * When the oldest pause began, of the first 100 addresses of each partition that were created; undefined if none is
 * paused. Where the time was not recorded, as in releases before 0.2, that of the creation. Leaves out records that
 * can't be read.
 */
export async function oldestPause(store: Store): Promise<number | undefined> {
  const times = await readPartitions(store, async (prefix) => {
    const key = subscriptionsKey(prefix, 'paused');
    const first = pairs(await store.redis.zrange(key, '0', String(MAX_LOOKED_FOR_PAUSE - 1), 'WITHSCORES'));
    const pausedAt = async ([id, createdAtMs]: [string, string]) => {
      const reading = store.redis.hget(subscriptionKey(prefix, id), 'paused_at');
      return Number((await readNamed('subscription', id, reading)) ?? createdAtMs);
    };
    return await loadOthers((some: [string, string][]) => Promise.all(some.map(pausedAt)), first, []);
  });
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The number of addresses that are failing or paused. */
export async function countProblems(store: Store): Promise<number> {
  return await sumPartitions(store, async (prefix) => {
    const [failing, paused] = [failingKey(prefix), subscriptionsKey(prefix, 'paused')];
    const [failingCount, pausedCount, both] = await Promise.all([
      store.redis.zcard(failing),
      store.redis.zcard(paused),
      store.redis.zintercard(2, failing, paused),
    ]);
    return failingCount + pausedCount - both;
  });
}

/** The addresses whose failing period began last, up to `limit`, the newest first. */
export async function listFailing(store: Store, limit: number): Promise<{ subscriptionId: string; sinceMs: number }[]> {
  const newest = await highest(store, failingKey, limit);
  return newest.map(({ id, score }) => ({ subscriptionId: id, sinceMs: score }));
}

/**
 * Of the `among` paused addresses that were created last, up to `limit`: those with the most held deliveries, the most
 * first. Adds to `unreadable` those whose held deliveries can't be counted.
 */
export async function listMostHeld(
  store: Store,
  among: number,
  limit: number,
  unreadable: UnreadableRecord[],
): Promise<string[]> {
  const newest = await highest(store, (prefix) => subscriptionsKey(prefix, 'paused'), among);
  const load = (some: { id: string }[]) =>
    Promise.all(some.map(async ({ id }) => ({ id, count: await laneLength(store, 'held', id) })));
  const held = await loadOthers(load, newest, unreadable);
  return held
    .sort((a, b) => b.count - a.count)
    .slice(0, limit)
    .map(({ id }) => id);
}

/** Fields: see add-address-counts.lua. */
function decodeHealth(record: Record<string, string>, nowMs: number): AddressHealth {
  const { w: window, q: failedInARow = '0', ls: lastSucceeded, e: errors, since } = record;
  return {
    state: since ? 'failing' : window === undefined ? 'unknown' : 'healthy',
    failingSinceMs: since ? Number(since) : null,
    failedInARow: Number(failedInARow),
    recent: recentOf(window ?? '', nowMs),
    lastSucceededAtMs: lastSucceeded ? Number(lastSucceeded) : null,
    error: errors === undefined ? null : mostFrequent(errors),
  };
}

function recentOf(window: string, nowMs: number): AddressHealth['recent'] {
  const oldest = Math.floor(nowMs / MINUTE_MS) - HEALTH_MINUTES;
  const recent = { attempts: 0, succeeded: 0 };
  for (const text of window.split(' ')) {
    const [minute = 0, succeeded = 0, failed = 0] = text.split(':').map(Number);
    if (minute <= oldest) continue;
    recent.attempts += succeeded + failed;
    recent.succeeded += succeeded;
  }
  return recent;
}

function mostFrequent(errors: string): AddressError | null {
  const all = JSON.parse(errors) as [string, number, number, string, number][];
  const [most] = all.sort((a, b) => b[1] - a[1]);
  if (!most) return null;
  const [label, count, sinceMs, deliveryId, attemptNumber] = most;
  return { label, count, sinceMs, deliveryId, attemptNumber };
}
