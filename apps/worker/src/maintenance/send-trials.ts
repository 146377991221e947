/** Maintenance duty: sends the trial of each address that is resuming, and replaces a trial that came to nothing. */
import { eachSideBySide } from '@posthorn/core';
import { resumingAddresses, sendTrial } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Scripts that are sent to Redis at once: about two milliseconds of it. One by one, each would wait for a reply. */
const AT_ONCE = 20;

/** A script chooses the trial and stores it in the same step, so of two processes at once one sends it. */
export const sendTrials = ({ store, clock }: DutyContext): Duty => ({
  name: 'send_trials',
  everyMs: 500,
  onlyWithWork: true,
  async run(partition) {
    await eachSideBySide(await resumingAddresses(store, partition), AT_ONCE, (subscriptionId) =>
      sendTrial(store, subscriptionId, clock.now()),
    );
  },
});
