/** Decides what an attempt's outcome means for its delivery. Holds the default schedule of retries. */
import type { AttemptError } from './delivery.ts';

/**
 * The schedule, in milliseconds: 1 m, 5 m, 30 m, 2 h, 12 h (specification 8). Its length plus one is the attempts
 * allowed.
 */
export const DEFAULT_RETRY_DELAYS_MS: readonly number[] = [60_000, 300_000, 1_800_000, 7_200_000, 43_200_000];
/** Attempts allowed by the default schedule. */
export const DEFAULT_MAX_ATTEMPTS = DEFAULT_RETRY_DELAYS_MS.length + 1;

/** Consecutive failed deliveries that pause an address (specification 8). */
export const DEFAULT_PAUSE_AFTER = 20;

/** What a status line means: null for a success, otherwise the attempt's error (specification 7, interface 6.5). */
export function errorOfStatus(statusCode: number): AttemptError | null {
  if (statusCode >= 200 && statusCode <= 299) return null;
  return statusCode >= 300 && statusCode <= 399 ? 'redirect' : 'status';
}

/** What becomes of a delivery after an attempt. */
export type Verdict =
  | { kind: 'succeeded' }
  | { kind: 'retry'; nextAttemptAtMs: number }
  | { kind: 'failed'; reason: AttemptError };

/**
 * The verdict after attempt number `attemptNumber` (from 1) ended at `endedAtMs` with `error`, null meaning success
 * (specification 3.1). The delay counts from the end of the failed attempt.
 */
export function decide(
  attemptNumber: number,
  error: AttemptError | null,
  retryDelaysMs: readonly number[],
  endedAtMs: number,
): Verdict {
  if (error === null) return { kind: 'succeeded' };
  const delayMs = retryDelaysMs[attemptNumber - 1];
  if (delayMs === undefined) return { kind: 'failed', reason: error };
  return { kind: 'retry', nextAttemptAtMs: endedAtMs + delayMs };
}
