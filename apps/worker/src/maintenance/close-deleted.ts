/** Maintenance duty: ends the deliveries of deleted subscriptions where the console stopped before it had done so. */
import { eachInTurn, partitionOf } from '@posthorn/core';
import { closeInSteps } from '@posthorn/dispatch';
import { closingSubscriptions } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** What a run may cost, in steps that find nothing. Each looks at 500 index entries, whosever they are. */
const COST_PER_RUN = 200;
/** Deliveries whose end costs as much as one such step. */
const DELIVERIES_PER_COST = 50;

/**
 * Takes the subscriptions in turns, so that a large one does not delay the others; nor does one that fails. A run goes
 * on where the one before it ended. Only unfinished deliveries are ended and only leftovers removed, so a second process
 * (or the console) at the same time changes nothing.
 */
export const closeDeleted = ({ store, jobQueues, clock }: DutyContext): Duty => {
  /** The rest of those that the last run has begun, by subscription. */
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
      // One that is not done has its next turn at the end of the queue, which grows while it is worked through.
      await eachInTurn(queue, async (id) => {
        if (left <= 0) return;
        const steps = begun.get(id) ?? closeInSteps({ store, jobQueues }, id, clock.now);
        // After an error it begins again.
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
