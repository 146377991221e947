/** Reads sorted sets of ids: by time in either direction, or by score. */
import { readPartitions, type Store } from '../store.ts';
import { newestFirst, type Position } from './page.ts';

/** Entries read by one command of a scan that passes over other ids. */
const ENTRIES_AT_ONCE = 2_000;

export interface Scan {
  order: 'newest_first' | 'oldest_first';
  /** The last entry that is known already. */
  after: Position | undefined;
  count: number;
  /** Both ends included. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** Passes over ids that do not begin with this. */
  idPrefix?: string | undefined;
}

/** The next `count` entries after a position, by (time, id). */
export async function scanSortedSet(store: Store, key: string, scan: Scan): Promise<Position[]> {
  const { after, count, idPrefix = '' } = scan;
  const isNewestFirst = scan.order === 'newest_first';
  const size = idPrefix === '' ? count : ENTRIES_AT_ONCE;
  let { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER } = scan;
  if (after && isNewestFirst) toMs = Math.min(toMs, after.ms);
  else if (after) fromMs = Math.max(fromMs, after.ms);
  const found: Position[] = [];
  // Many may share one millisecond (a large fan-out): those up to the position are passed over. Further reads begin at
  // the time of the last entry, since Redis walks to an offset entry by entry.
  for (let offset = 0; found.length < count; ) {
    const flat = isNewestFirst
      ? await store.redis.zrevrangebyscore(key, toMs, fromMs, 'WITHSCORES', 'LIMIT', offset, size)
      : await store.redis.zrangebyscore(key, fromMs, toMs, 'WITHSCORES', 'LIMIT', offset, size);
    const entries = pairs(flat).map(([id, score]) => ({ ms: Number(score), id }));
    for (const entry of entries) {
      const isNext = !after || (isNewestFirst ? newestFirst(after, entry) : newestFirst(entry, after)) < 0;
      if (isNext && entry.id.startsWith(idPrefix)) found.push(entry);
    }
    const lastMs = entries.at(-1)?.ms;
    if (lastMs === undefined || entries.length < size) break;
    const knownThen = lastMs === (isNewestFirst ? toMs : fromMs) ? offset : 0;
    offset = knownThen + entries.filter(({ ms }) => ms === lastMs).length;
    if (isNewestFirst) toMs = lastMs;
    else fromMs = lastMs;
  }
  return found.slice(0, count);
}

/** Of a sorted set of ids that each partition has: up to `limit` with the highest scores, the highest first. */
export async function highest(
  store: Store,
  keyOf: (prefix: string) => string,
  limit: number,
): Promise<{ id: string; score: number }[]> {
  const entries = await readPartitions(store, async (prefix) =>
    pairs(await store.redis.zrevrange(keyOf(prefix), 0, limit - 1, 'WITHSCORES')),
  );
  const all = entries.map(([id, score]) => ({ id, score: Number(score) }));
  return all.sort((a, b) => b.score - a.score).slice(0, limit);
}

/** The pairs of a flat reply: member and score, or field and value. */
export function pairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']);
}
