/** Work whose result many callers share, so that their number does not multiply it. */

/**
 * Returns a function that resolves with the outcome of `work`. Calls during a run wait for that run; for `maxAgeMs` after its end they get
 * the same outcome, also where it failed. So `work` runs at most once in `maxAgeMs`, whatever the number of callers.
 */
export function shareResult<T>(work: () => Promise<T>, maxAgeMs: number): () => Promise<T> {
  let latest: Promise<T> | undefined;
  let endedAtMs: number | undefined;
  return () => {
    const isFresh = endedAtMs === undefined || performance.now() - endedAtMs < maxAgeMs;
    if (latest !== undefined && isFresh) return latest;
    endedAtMs = undefined;
    latest = work().finally(() => {
      endedAtMs = performance.now();
    });
    return latest;
  };
}
