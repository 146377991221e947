/** The sites that workers reached lately, stored so that a worker that starts during an outage knows them too. */
import { DAY_MS } from '@posthorn/core';
import { partitionPrefix, reachedKey } from './keys.ts';
import { pairs } from './lists/sorted-set.ts';
import { execAll } from './redis/exec-all.ts';
import type { Store } from './store.ts';

const MAX_REACHED = 200;
const LIFE_MS = DAY_MS;

/** Adds sites that were just reached. Keeps the latest 200. */
export async function saveReachedSites(store: Store, sites: readonly string[], nowMs: number): Promise<void> {
  if (sites.length === 0) return;
  const key = reachedKey(partitionPrefix(store, 0));
  const change = store.redis.multi().zadd(key, ...sites.flatMap((site) => [nowMs, site]));
  await execAll(change.zremrangebyrank(key, 0, -MAX_REACHED - 1).pexpire(key, LIFE_MS));
}

/** The sites saved by all workers, with the time at which each was last reached, oldest first. */
export async function loadReachedSites(store: Store): Promise<{ text: string; reachedAtMs: number }[]> {
  const flat = await store.redis.zrange(reachedKey(partitionPrefix(store, 0)), '0', '-1', 'WITHSCORES');
  return pairs(flat).map(([text, reachedAt]) => ({ text, reachedAtMs: Number(reachedAt) }));
}
