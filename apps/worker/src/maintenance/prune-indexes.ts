/** Maintenance duty: removes the entries of expired deliveries from the indexes of finished ones. */
import { pruneFinished, pruneSucceeded } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/**
 * Upper limits of a run, for each index. 400 chunks of 500 are 200,000 entries: far more than a partition delivers in
 * the 10 s between two runs, so pruning keeps up. Entries whose record still exists are checked again and again, so a
 * run ends after 10,000 of them.
 */
const LIMITS = { maxChunks: 400, maxKept: 10_000 };

/**
 * Removes only entries whose record is gone. A run continues where the previous one ended, to get past many records
 * that are kept for longer than usual, such as those that succeeded when `RETENTION_SUCCEEDED` was longer. Two
 * processes at once shift each other's offsets: an entry that one of them skips is removed by a later run.
 */
export const pruneIndexes = ({ store, clock }: DutyContext): Duty => {
  const indexes = [
    { status: 'succeeded', keptMs: store.succeededRetentionMs, offsets: new Map<number, number>() },
    { status: 'failed', keptMs: store.retentionMs, offsets: new Map<number, number>() },
  ] as const;
  const places = new Map<number, string | undefined>();
  return {
    name: 'prune_indexes',
    everyMs: 10_000,
    async run(partition) {
      for (const { status, keptMs, offsets } of indexes) {
        const range = { beforeMs: clock.now() - keptMs, ...LIMITS };
        offsets.set(partition, await pruneFinished(store, partition, status, range, offsets.get(partition)));
      }
      const range = { beforeMs: clock.now() - store.succeededRetentionMs, ...LIMITS };
      places.set(partition, await pruneSucceeded(store, partition, range, places.get(partition)));
    },
  };
};
