/** A histogram of durations that many processes can add up: counts in buckets that grow by a fifth. */
import { DAY_MS } from './time.ts';

const GROWTH = 1.2;
/** 30 days; anything longer counts as that. */
const LAST_BUCKET = bucketOfAny(30 * DAY_MS);

/** The number of the bucket of a duration. */
export function durationBucket(ms: number): number {
  return Math.min(bucketOfAny(ms), LAST_BUCKET);
}

function bucketOfAny(ms: number): number {
  return ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(GROWTH));
}

/**
 * The duration in milliseconds that a share (0 to 1) of all stays within, at most a fifth too high; null where nothing
 * was counted. `counts` are by number of the bucket.
 */
export function durationPercentile(counts: ReadonlyMap<number, number>, share: number): number | null {
  let left = share * [...counts.values()].reduce((sum, count) => sum + count, 0);
  for (const [bucket, count] of [...counts].sort(([a], [b]) => a - b)) {
    left -= count;
    if (left <= 0 && count > 0) return Math.round(GROWTH ** bucket);
  }
  return null;
}
