/** The histogram of durations: how close its percentiles come. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { durationBucket, durationPercentile } from '../index.ts';
import { DAY_MS } from './time.ts';

describe('the bucket of a duration', () => {
  it('represents each of its durations with at most a fifth too much', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 * DAY_MS }), (ms) => {
        const stands = durationPercentile(new Map([[durationBucket(ms), 1]]), 1)!;
        // Durations are rounded to a millisecond.
        expect(stands).toBeGreaterThan(ms - 0.51);
        expect(stands).toBeLessThan(ms * 1.2 + 0.51);
      }),
    );
  });
  it('is the first one up to a millisecond', () => {
    expect([0, 0.3, 1].map(durationBucket)).toEqual([0, 0, 0]);
    expect(durationBucket(1.1)).toBe(1);
  });
  it('is the last one beyond 30 days', () => {
    expect(durationBucket(400 * DAY_MS)).toBe(durationBucket(30 * DAY_MS));
    expect(durationBucket(24 * DAY_MS)).toBeLessThan(durationBucket(30 * DAY_MS));
  });
});

describe('a percentile', () => {
  const counts = (...durations: number[]) => {
    const counted = new Map<number, number>();
    for (const ms of durations) {
      const bucket = durationBucket(ms);
      counted.set(bucket, (counted.get(bucket) ?? 0) + 1);
    }
    return counted;
  };
  const about = (ms: number) => durationPercentile(counts(ms), 1);

  it('is the duration that this share of all durations does not exceed, whatever the order of counting', () => {
    const hundred = counts(5_000, ...Array.from({ length: 49 }, () => 400), ...Array.from({ length: 50 }, () => 10));
    expect(durationPercentile(hundred, 0.5)).toBe(about(10));
    expect(durationPercentile(hundred, 0.51)).toBe(about(400));
    expect(durationPercentile(hundred, 0.99)).toBe(about(400));
    expect(durationPercentile(hundred, 1)).toBe(about(5_000));
  });
  it('is the shortest duration for a share of 0', () => {
    const counted = counts(400);
    expect(durationPercentile(new Map([[0, 0], ...counted]), 0)).toBe(about(400));
  });
  it('is null if nothing was counted', () => {
    expect(durationPercentile(new Map(), 0.5)).toBeNull();
    expect(durationPercentile(new Map([[3, 0]]), 0.5)).toBeNull();
  });
});
