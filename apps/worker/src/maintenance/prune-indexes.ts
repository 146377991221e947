/** Maintenance duty: removes the entries of expired deliveries from the indexes of finished ones. */
import { pruneFinished } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Of 500 entries each. */
const MAX_CHUNKS_PER_RUN = 20;

/**
 * Removes only entries whose record is gone. Two processes at once shift each other's offsets: an entry that one of them skips is
 * removed by the next run.
 */
export const pruneIndexes = ({ store, clock }: DutyContext): Duty => ({
  name: 'prune_indexes',
  everyMs: 10_000,
  async run(partition) {
    for (const status of ['succeeded', 'failed'] as const) {
      await pruneFinished(store, partition, status, clock.now() - store.retentionMs, MAX_CHUNKS_PER_RUN);
    }
  },
});
