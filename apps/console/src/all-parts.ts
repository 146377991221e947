/** Changes of several things at once, of which some may fail. */
import { ChangeFailed, StorageUnavailable } from '@posthorn/core';

/**
 * Waits for all parts of a change. Resolves with their results if all succeed. Rejects with the error of the first that
 * failed; if the storage failed, with `ChangeFailed` that says what `madeText` returns for the results of the others,
 * unless that is undefined.
 */
export async function allParts<T>(
  parts: readonly Promise<T>[],
  madeText: (results: T[]) => string | undefined,
): Promise<T[]> {
  const settled = await Promise.allSettled(parts);
  const results = settled.flatMap((part) => (part.status === 'fulfilled' ? [part.value] : []));
  const failed = settled.find((part) => part.status === 'rejected');
  if (!failed) return results;
  const error: unknown = failed.reason;
  const made = error instanceof StorageUnavailable ? madeText(results) : undefined;
  throw error instanceof StorageUnavailable && made !== undefined ? new ChangeFailed(error, made) : error;
}
