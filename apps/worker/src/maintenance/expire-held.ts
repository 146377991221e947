/** Maintenance duty: ends held deliveries that are older than the retention (interface 6.2). */
import { eachInTurn, StorageUnavailable, throwRejections } from '@posthorn/core';
import { endDeliveries, heldBefore, type StoredDelivery } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

const CHUNK = 500;
const MAX_CHUNKS_PER_RUN = 20;

/**
 * A script ends only what is still held, so two processes at once end and count each delivery once. One that can't be
 * read or ended fails the run, which says so, but does not keep the others from their end.
 */
export const expireHeld = ({ store, clock, logger }: DutyContext): Duty => ({
  name: 'expire_held',
  everyMs: 10_000,
  async run(partition) {
    const end = async (deliveries: readonly StoredDelivery[]) => {
      const some = { partition, deliveries, reason: 'expired', nowMs: clock.now(), onlyHeld: true } as const;
      const ended = await endDeliveries(store, some);
      if (ended > 0) logger.warn({ deliveries: ended, reason: 'expired' }, 'delivery.ended_without_attempt');
    };
    const endAll = async (deliveries: readonly StoredDelivery[]) => {
      try {
        await end(deliveries);
      } catch (error) {
        if (error instanceof StorageUnavailable) throw error;
        // One of them is at fault, and may have ended in part: it would not fail again.
        await eachInTurn(deliveries, (one) => end([one]));
        throw error;
      }
    };
    const results: PromiseSettledResult<void>[] = [];
    let next: Parameters<typeof heldBefore>[4];
    for (let chunk = 0; chunk < MAX_CHUNKS_PER_RUN; chunk++) {
      const found = await heldBefore(store, partition, clock.now() - store.retentionMs, CHUNK, next);
      const unreadable = found.unreadable.map((error) => Promise.reject(error));
      results.push(...(await Promise.allSettled([endAll(found.deliveries), ...unreadable])));
      next = found.next;
      if (next === undefined) break;
    }
    throwRejections(results);
  },
});
