/** Reads streams, newest entry first. */
import type { Store } from '../store.ts';

/**
 * The newest entries of a stream from `start` (as XREVRANGE takes it) back to `oldestMs`, at most `count`. XREVRANGE
 * looks at all entries where none is as old as `start`, and Redis does nothing else meanwhile: 90 ms for a million. So
 * one is asked for first.
 */
export async function readStreamBack(
  { redis }: Store,
  key: string,
  { start, oldestMs, count }: { start: string; oldestMs: number; count: number },
): Promise<[id: string, fields: string[]][]> {
  if (start !== '+' && (await redis.xrange(key, '-', start, 'COUNT', 1)).length === 0) return [];
  return await redis.xrevrange(key, start, oldestMs, 'COUNT', count);
}
