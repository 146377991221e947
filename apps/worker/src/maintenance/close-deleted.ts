/** Maintenance duty: ends the deliveries of deleted subscriptions where the console stopped before it had done so. */
import { eachInTurn, partitionOf } from '@posthorn/core';
import { closeInSteps } from '@posthorn/dispatch';
import { closingSubscriptions } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/**
 * The upper limit of a run's cost. Its unit is a step that finds nothing: it scans 500 index entries of the partition.
 */
const COST_PER_RUN = 200;
/** Deliveries whose end costs as much as one such step. */
const DELIVERIES_PER_COST = 50;

/**
 * Takes the subscriptions in turns, so that neither a large one nor one that fails delays the others. A run continues
 * where the previous one ended. It ends only unfinished deliveries and removes only leftovers, so a second process (or
 * the console) at the same time does no harm.
 */
export const closeDeleted = ({ store, clock }: DutyContext): Duty => {
  /** The remaining steps of each subscription that an earlier run has begun. */
  const begun = new Map<string, ReturnType<typeof closeInSteps>>();
  return {
    name: 'close_deleted',
    everyMs: 10_000,
    onlyWithWork: true,
    async run(partition) {
      const queue = await closingSubscriptions(store, partition);
      const closing = new Set(queue);
      for (const id of begun.keys())
        if (partitionOf(id, store.partitions) === partition && !closing.has(id)) begun.delete(id);
      let left = COST_PER_RUN;
      // A subscription that is not done is appended again: the loop also takes what is appended while it runs.
      await eachInTurn(queue, async (id) => {
        if (left <= 0) return;
        const steps = begun.get(id) ?? closeInSteps(store, id, clock.now);
        // If this step throws, the next run starts this subscription from the beginning.
        begun.delete(id);
        const step = await steps.next();
        left -= 1;
        if (step.done) return;
        left -= step.value / DELIVERIES_PER_COST;
        begun.set(id, steps);
        queue.push(id);
      });
    },
  };
};
