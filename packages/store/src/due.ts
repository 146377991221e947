/** Reads what is due of a sorted set by time, also where the clock of the process that set a time was wrong. */
import type { Store } from './store.ts';

/** Lowest and highest score of a range, as Redis takes them. */
type Range = readonly [from: number | string, to: number | string];

/**
 * Returns members of a sorted set by time: up to `limit` of those that are due, then up to `limit` of those with a time
 * that is further ahead than any may be. Only a wrong clock sets such a time, and they would wait until it is reached.
 */
export async function readDue(store: Store, key: string, due: Range, ahead: Range, limit: number): Promise<string[]> {
  const found = await Promise.all(
    [due, ahead].map(([from, to]) => store.redis.zrangebyscore(key, from, to, 'LIMIT', 0, limit)),
  );
  return found.flat();
}
