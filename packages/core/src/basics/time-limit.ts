/** A time limit for work that has none of its own. */

/** The work took longer than its time limit. It may still go on. */
export class TimeLimitExceeded extends Error {
  override name = 'TimeLimitExceeded';
}

/** Resolves or rejects as `work` does. Rejects with `TimeLimitExceeded` after `limitMs`. */
export async function withTimeLimit<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const expired = Promise.withResolvers<never>();
  // A process that was blocked for this long first reads what has come meanwhile.
  const timer = setTimeout(
    () => setImmediate(() => expired.reject(new TimeLimitExceeded(`No result within ${limitMs} ms`))),
    limitMs,
  );
  try {
    return await Promise.race([work, expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
