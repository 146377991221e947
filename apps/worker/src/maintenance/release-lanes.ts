/**
 * Maintenance duties: release held and overdue deliveries at a fixed rate, and parked deliveries that no ending attempt
 * releases.
 */
import { eachInTurn, eachSideBySide } from '@posthorn/core';
import { addressesToRelease, releaseDeliveries } from '@posthorn/store';
import { randomSample } from '../random-sample.ts';
import type { Duty, DutyContext } from './duty.ts';

const AT_RATE_EVERY_MS = 500;
const PARKED_EVERY_MS = 2_000;
/** In all partitions together: most of what is released finds no slot, and is parked again. */
const MAX_PARKED_PER_RUN = 200;
/** Addresses whose deliveries are released at once: by one script, up to a `RELEASE_RATE` of 50. */
const ADDRESSES_AT_ONCE = 8;

/**
 * Releases held deliveries of resumed addresses, or overdue deliveries, at `RELEASE_RATE` (`releasePerSecond`) for each
 * address. A script removes each delivery from the lane once, so two processes never release one twice; while both run,
 * an address may receive twice the rate.
 */
export const releaseAtRate =
  (lane: 'held' | 'overdue') =>
  (context: DutyContext): Duty => {
    /** The runs of each partition so far. */
    const runs = new Map<number, number>();
    /** What is released to an address in so many runs. */
    const inRuns = (count: number) => Math.ceil((context.releasePerSecond * count * AT_RATE_EVERY_MS) / 1000);
    return {
      name: `release_${lane}`,
      everyMs: AT_RATE_EVERY_MS,
      onlyWithWork: true,
      async run(partition) {
        const run = runs.get(partition) ?? 0;
        runs.set(partition, run + 1);
        const limit = inRuns(run + 1) - inRuns(run);
        if (limit === 0) return;
        const waiting = await addressesToRelease(context.store, partition, lane);
        await eachSideBySide(waiting, ADDRESSES_AT_ONCE, (subscriptionId) =>
          releaseDeliveries(context.store, lane, subscriptionId, limit, context.clock.now()),
        );
      },
    };
  };

/**
 * Releases one parked delivery of each address, in random order so that every address gets a turn. Usually an attempt
 * that ends releases parked deliveries. This duty releases those that were parked after the last attempt ended, and
 * those of addresses that no process remembers as waiting. One is enough: when its attempt ends, it releases the next.
 * Two processes never release the same delivery, as above.
 */
export const releaseParked = (context: DutyContext): Duty => ({
  name: 'release_parked',
  everyMs: PARKED_EVERY_MS,
  onlyWithWork: true,
  async run(partition) {
    const waiting = await addressesToRelease(context.store, partition, 'parked');
    const some = randomSample(waiting, Math.ceil(MAX_PARKED_PER_RUN / context.store.partitions));
    // One by one: most of these jobs are parked again, and a burst of them would delay the others.
    await eachInTurn(some, (subscriptionId) =>
      releaseDeliveries(context.store, 'parked', subscriptionId, 1, context.clock.now()),
    );
  },
});
