/** Waits for an effect of another process that sends no signal. */

/**
 * Whatever takes longer than this hangs, even on a busy machine. Shorter than jest's own limit, so that the error names
 * the awaited condition.
 */
export const HUNG_MS = 120_000;

/** How often a condition is looked at. */
const PROBE_MS = 20;

/**
 * Calls `probe` every `everyMs` until it returns something other than undefined or false, and resolves with that.
 * Rejects after `limitMs`, naming `what`: as a function, what it says by then.
 */
export async function eventually<T>(
  what: string | (() => string),
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  limitMs = HUNG_MS,
  everyMs = PROBE_MS,
): Promise<T> {
  const endsAt = Date.now() + limitMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > endsAt) throw new Error(`Not in ${limitMs} ms: ${typeof what === 'function' ? what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
