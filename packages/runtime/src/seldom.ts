/** Limits how often the same problem is logged. */

/** What fails again and again is logged once in this time, where nothing else is said. */
const LOG_EVERY_MS = 10_000;

/** Returns a function that is true at its first call, and then once in `everyMs`. `now`: in milliseconds, monotonic. */
export function createSeldom({ everyMs = LOG_EVERY_MS, now = () => performance.now() } = {}): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - lastMs < everyMs) return false;
    lastMs = now();
    return true;
  };
}
