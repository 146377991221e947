/** Maintenance duty: starts bulk replays that a console has left unstarted in their batch, and works through bulk replays and cancellations. */
import { eachInTurn } from '@posthorn/core';
import { stepCancellation } from '@posthorn/dispatch';
import { activeBatches, activeReplays, stepBatch, stepReplay } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** The most steps of a run. Each covers up to 100 failed deliveries, or 200 of a cancelled replay. */
const STEPS_PER_RUN = 20;

/**
 * Takes the running replays in turns, so that neither a large one nor one that fails delays the others. A step takes
 * effect only if the replay's cursor is still where the step began, so two processes at once replay nothing twice.
 */
export const runReplays = ({ store, jobQueues, clock }: DutyContext): Duty => ({
  name: 'run_replays',
  everyMs: 1_000,
  onlyWithWork: true,
  async run(partition) {
    const stepBatches = async () => {
      await eachInTurn(await activeBatches(store, partition), (id) => stepBatch(store, id, clock.now()));
    };
    const stepOf = async (id: string) =>
      (await stepReplay(store, id, clock.now())) || (await stepCancellation({ store, jobQueues }, id, clock.now()));
    const stepReplays = async () => {
      const queue = await activeReplays(store, partition, STEPS_PER_RUN);
      let left = STEPS_PER_RUN;
      // A replay that is not done is appended again: the loop also takes what is appended while it runs.
      await eachInTurn(queue, async (id) => {
        if (left-- > 0 && (await stepOf(id))) queue.push(id);
      });
    };
    await eachInTurn([stepBatches, stepReplays], (step) => step());
  },
});
