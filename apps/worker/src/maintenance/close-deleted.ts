/** Maintenance duty: ends the deliveries of deleted subscriptions where the console stopped before it had done so. */
import { eachInTurn } from '@posthorn/core';
import { closeSubscription } from '@posthorn/dispatch';
import { closingSubscriptions } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/**
 * Only unfinished deliveries are ended and only leftovers removed, so a second process (or the console) at the same
 * time changes nothing.
 */
export const closeDeleted = ({ store, jobQueues, clock }: DutyContext): Duty => ({
  name: 'close_deleted',
  everyMs: 10_000,
  onlyWithWork: true,
  async run(partition) {
    await eachInTurn(await closingSubscriptions(store, partition), (subscriptionId) =>
      closeSubscription({ store, jobQueues }, subscriptionId, clock.now()),
    );
  },
});
