/** Work whose result many callers share, so that their number does not multiply it. */

/**
 * Returns a function that resolves with the result of `work`. Calls during a run wait for that run; for `maxAgeMs` after its end they get
 * the same result, so `work` succeeds at most once in `maxAgeMs`. A failure is shared by those who waited for it and by nobody else: whoever
 * asks next must not be told of a problem that may be over. `now` is a monotonic clock in milliseconds.
 */
export function shareResult<T>(
  work: () => Promise<T>,
  maxAgeMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let latest: Promise<T> | undefined;
  let expiresAtMs = 0;
  return () => {
    if (latest !== undefined && now() < expiresAtMs) return latest;
    const run = work();
    latest = run;
    expiresAtMs = Number.POSITIVE_INFINITY;
    run.then(
      () => {
        expiresAtMs = now() + maxAgeMs;
      },
      () => {
        latest = undefined;
      },
    );
    return run;
  };
}
