/** Throws what failed of work that was done side by side, once all of it has ended: no failure hides another. */
import { StorageUnavailable } from '../errors.ts';

/**
 * Throws the only error of what `Promise.allSettled` resolved to, or an `AggregateError` with all errors and the
 * message of the first; returns if nothing was rejected. If all are `StorageUnavailable`, it throws the first: callers
 * look for that class, and the others say the same.
 */
export function throwRejections(results: readonly PromiseSettledResult<unknown>[]): void {
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  const [first] = errors;
  if (errors.length === 0) return;
  if (errors.length === 1 || errors.every((error) => error instanceof StorageUnavailable)) throw first;
  throw new AggregateError(errors, first instanceof Error ? first.message : String(first));
}
