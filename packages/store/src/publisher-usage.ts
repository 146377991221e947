/** Counts the bytes that each publisher has stored, by time. The quota is left to ingest. */
import { DAY_MS } from '@posthorn/core';
import { publisherUsageKey } from './keys.ts';
import { execAll } from './redis/exec-all.ts';
import type { Store } from './store.ts';

/**
 * The retention is divided into this many buckets: stored bytes are subtracted up to a thirtieth of the retention late.
 */
const BUCKETS = 30;

/**
 * Adds `bytes` (0: only reads) to what a publisher has stored, and returns the bytes that it has stored within the
 * retention. An estimate: the last second of counts of a killed process is lost, events kept longer than the retention
 * are not counted any more, and it begins again when the retention is changed.
 */
export async function addPublisherUsage(
  store: Store,
  publisher: string,
  bytes: number,
  nowMs: number,
): Promise<number> {
  const key = publisherUsageKey(store.prefix, publisher);
  const bucketMs = Math.ceil(store.retentionMs / BUCKETS);
  const bucket = Math.floor(nowMs / bucketMs);
  if (bytes > 0) {
    const change = store.redis.multi().hincrby(key, String(bucket), Math.round(bytes));
    await execAll(change.pexpire(key, store.retentionMs + bucketMs));
  }
  // Not in the transaction: a full Redis refuses even reads there.
  const counts = Object.entries(await store.redis.hgetall(key));
  // Numbers further ahead are of a shorter retention, which a process had before: clocks differ by a day at most.
  const ahead = Math.ceil(DAY_MS / bucketMs);
  const isOutdated = ([number]: [string, string]) =>
    Number(number) < bucket - BUCKETS || Number(number) > bucket + ahead;
  const outdated = counts.filter(isOutdated).map(([number]) => number);
  if (outdated.length > 0) await store.redis.hdel(key, ...outdated);
  return counts.filter((entry) => !isOutdated(entry)).reduce((sum, [, count]) => sum + Number(count), 0);
}
