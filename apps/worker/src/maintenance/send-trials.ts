/** Maintenance duty: sends the trial of each address that is resuming, and replaces a trial that came to nothing. */
import { eachInTurn } from '@posthorn/core';
import { resumingAddresses, sendTrial } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** A script chooses the trial and stores it in the same step, so of two processes at once one sends it. */
export const sendTrials = ({ store, clock }: DutyContext): Duty => ({
  name: 'send_trials',
  everyMs: 500,
  onlyWithWork: true,
  async run(partition) {
    await eachInTurn(await resumingAddresses(store, partition), (subscriptionId) =>
      sendTrial(store, subscriptionId, clock.now()),
    );
  },
});
