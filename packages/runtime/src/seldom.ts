/** Limits how often the same problem is logged. */

/** What fails again and again is logged once in this time. */
const LOG_EVERY_MS = 10_000;

/** Returns a function that is true at its first call, and then once in 10 s. `now`: in milliseconds, monotonic. */
export function createSeldom(now = () => performance.now()): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - lastMs < LOG_EVERY_MS) return false;
    lastMs = now();
    return true;
  };
}
