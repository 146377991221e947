/** Maintenance duty: sends the trial of each address that is resuming, and replaces a trial that came to nothing. */
import { chunksOf, eachInTurn, throwRejections } from '@posthorn/core';
import { resumingAddresses, sendTrial } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Scripts that are sent to Redis at once: about two milliseconds of it. */
const AT_ONCE = 20;

/** A script chooses the trial and stores it in the same step, so of two processes at once one sends it. */
export const sendTrials = ({ store, clock }: DutyContext): Duty => ({
  name: 'send_trials',
  everyMs: 500,
  onlyWithWork: true,
  async run(partition) {
    const resuming = await resumingAddresses(store, partition);
    // One by one, each would wait for a reply: thousands that are resumed together waited for half a minute.
    await eachInTurn(chunksOf(resuming, AT_ONCE), async (some) => {
      throwRejections(await Promise.allSettled(some.map((id) => sendTrial(store, id, clock.now()))));
    });
  },
});
