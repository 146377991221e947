/** Shares one result among many callers, so that their number does not multiply the work. */

/**
 * Returns a function that resolves with the result of `work`. Calls during a run wait for that run. Calls within
 * `maxAgeMs` after its end get the same result, so `work` succeeds at most once per `maxAgeMs`. Only the calls that
 * waited for a failed run get its error; the next call starts a new run. `now` is a monotonic clock in milliseconds.
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
