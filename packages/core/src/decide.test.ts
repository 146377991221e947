/** The schedule, and what an attempt means for its delivery (specification 3.1, 7 and 8). */
import { describe, expect, it } from '@jest/globals';
import { DEFAULT_RETRY_DELAYS_MS, decide, errorOfStatus } from './index.ts';

describe('schedule', () => {
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
