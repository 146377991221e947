/** Waits for an effect of another process that sends no signal. */

/**
 * Whatever takes longer than this hangs, even on a busy machine. Shorter than jest's own limit, so that the error names
 * the awaited condition.
 */
export const HUNG_MS = 120_000;

const FIRST_PROBES_MS = 20;
const LATE_PROBES_MS = 250;

/**
 * Calls `probe` every `everyMs` until it returns something other than undefined or false, and resolves with that.
 * Without `everyMs`, the longer it takes, the less often: a probe takes CPU from what it waits for. Rejects after
 * `limitMs`, naming `what`: as a function, what it says by then.
 */
export async function eventually<T>(
  what: string | (() => string),
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = HUNG_MS,
  everyMs?: number,
): Promise<T> {
  const startedAt = Date.now();
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > limitMs) throw new Error(`Not in ${limitMs} ms: ${typeof what === 'function' ? what() : what}`);
    const ms = everyMs ?? Math.min(Math.max(FIRST_PROBES_MS, waitedMs / 20), LATE_PROBES_MS);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}
