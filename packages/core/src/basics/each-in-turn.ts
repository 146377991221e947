/** Does the same for each of many items: one that fails does not stop the others. */
import { PartitionUnavailable, StorageUnavailable } from '../errors.ts';
import { chunksOf } from './chunks.ts';
import { throwRejections } from './throw-rejections.ts';

/**
 * Calls `step` with each item, one after the other. After an error it goes on with the next item, and throws at the end
 * as `throwRejections` does. `StorageUnavailable` is thrown at once, since the others would wait as long for Redis,
 * unless it is `PartitionUnavailable`.
 */
export async function eachInTurn<T>(items: Iterable<T>, step: (item: T) => Promise<unknown>): Promise<void> {
  const failures: PromiseRejectedResult[] = [];
  for (const item of items) {
    try {
      await step(item);
    } catch (error) {
      if (error instanceof StorageUnavailable && !(error instanceof PartitionUnavailable)) throw error;
      failures.push({ status: 'rejected', reason: error });
    }
  }
  throwRejections(failures);
}

/** The same with `atOnce` items side by side: together they wait for Redis as long as one alone. */
export async function eachSideBySide<T>(
  items: readonly T[],
  atOnce: number,
  step: (item: T) => Promise<unknown>,
): Promise<void> {
  await eachInTurn(chunksOf(items, atOnce), async (some) =>
    throwRejections(await Promise.allSettled(some.map((item) => step(item)))),
  );
}
