/** The schedule, and what an attempt means for its delivery (specification 3.1, 7 and 8). */
import { describe, expect, it } from '@jest/globals';
import { MINUTE_MS } from './basics/time.ts';
import { DEFAULT_MAX_ATTEMPTS, DEFAULT_PAUSE_AFTER, DEFAULT_RETRY_DELAYS_MS, decide, errorOfStatus } from './index.ts';

describe('schedule', () => {
  it('has the default delays 1 m, 5 m, 30 m, 2 h and 12 h', () => {
    expect(DEFAULT_RETRY_DELAYS_MS).toEqual([1, 5, 30, 120, 720].map((minutes) => minutes * MINUTE_MS));
  });
  it('allows six attempts, and 20 consecutive failed deliveries before a pause', () => {
    expect([DEFAULT_MAX_ATTEMPTS, DEFAULT_PAUSE_AFTER]).toEqual([6, 20]);
  });
  it('follows each failed attempt after exactly its delay, and fails the delivery after the sixth', () => {
    for (const [i, delayMs] of DEFAULT_RETRY_DELAYS_MS.entries()) {
      expect(decide(i + 1, 'timeout', DEFAULT_RETRY_DELAYS_MS, 1_000)).toEqual({
        kind: 'retry',
        nextAttemptAtMs: 1_000 + delayMs,
      });
    }
    expect(decide(6, 'timeout', DEFAULT_RETRY_DELAYS_MS, 1_000)).toEqual({ kind: 'failed', reason: 'timeout' });
  });
  it('ends the delivery at its first successful attempt', () => {
    for (let attempt = 1; attempt <= 6; attempt++) {
      expect(decide(attempt, null, DEFAULT_RETRY_DELAYS_MS, 0)).toEqual({ kind: 'succeeded' });
    }
  });
  it('counts 2xx as success alone, and every 3xx as a redirect', () => {
    for (let status = 100; status < 1000; status++) {
      const expected = status >= 200 && status < 300 ? null : status >= 300 && status < 400 ? 'redirect' : 'status';
      expect(errorOfStatus(status)).toBe(expected);
    }
  });
});
