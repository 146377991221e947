/** Maintenance duty: ends held deliveries that are older than the retention (interface 6.2). */
import { endDeliveries, heldBefore } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

const CHUNK = 500;
const MAX_CHUNKS_PER_RUN = 20;

/** A script ends only what is still held, so two processes at once end and count each delivery once. */
export const expireHeld = ({ store, clock, logger }: DutyContext): Duty => ({
  name: 'expire_held',
  everyMs: 10_000,
  async run(partition) {
    for (let chunk = 0; chunk < MAX_CHUNKS_PER_RUN; chunk++) {
      const nowMs = clock.now();
      const deliveries = await heldBefore(store, partition, nowMs - store.retentionMs, CHUNK);
      const ended = await endDeliveries(store, { partition, deliveries, reason: 'expired', nowMs, onlyHeld: true });
      if (ended > 0) logger.warn({ deliveries: ended, reason: 'expired' }, 'delivery.ended_without_attempt');
      if (deliveries.length < CHUNK) return;
    }
  },
});
