/**
 * Maintenance duty: starts bulk replays that a console has left unstarted in their batch, and works through bulk
 * replays and cancellations.
 */
import { eachInTurn } from '@posthorn/core';
import { activeBatches, activeReplays, stepBatch, stepCancellation, stepReplay } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** The most steps of a run. Each covers up to 100 failed deliveries, or deliveries of a cancelled replay. */
const STEPS_PER_RUN = 20;
/** Replays that a run looks at: more than it has steps, because those whose canary has no verdict yet take none. */
const LOOKED_AT = 100;

/**
 * Takes the running replays in turns, so that neither a large one nor one that fails delays the others. A step takes
 * effect only if the replay's cursor is still where the step began, so two processes at once replay nothing twice.
 */
export const runReplays = ({ store, clock }: DutyContext): Duty => ({
  name: 'run_replays',
  everyMs: 1_000,
  onlyWithWork: true,
  async run(partition) {
    const stepBatches = async () => {
      await eachInTurn(await activeBatches(store, partition), (id) => stepBatch(store, id, clock.now()));
    };
    const stepReplays = async () => {
      const queue = await activeReplays(store, partition, LOOKED_AT);
      let left = STEPS_PER_RUN;
      // A replay that is not done is appended again: the loop also takes what is appended while it runs.
      await eachInTurn(queue, async (id) => {
        if (left <= 0) return;
        left -= 1;
        const step = await stepReplay(store, id, clock.now());
        if (step === 'undecided') left += 1;
        else if (step === 'more' || (await stepCancellation(store, id, clock.now()))) queue.push(id);
      });
    };
    await eachInTurn([stepBatches, stepReplays], (step) => step());
  },
});
