/** Maintenance duty: starts the bulk replays of batches that a console has left, and works through bulk replays and their cancellations. */
import { stepCancellation } from '@posthorn/dispatch';
import { activeBatches, activeReplays, stepBatch, stepReplay } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** After so many steps, a run ends with its turn. Each covers up to 100 failed deliveries, or 200 of a cancelled replay. */
const STEPS_PER_RUN = 20;

/**
 * Takes the running replays in turns, so that a large one does not delay the others. A step counts only if the replay's cursor is still
 * where the step began, so two processes at once replay nothing twice.
 */
export const runReplays = ({ store, producer, clock }: DutyContext): Duty => ({
  name: 'run_replays',
  everyMs: 1_000,
  onlyWithWork: true,
  async run(partition) {
    for (const id of await activeBatches(store, partition)) await stepBatch(store, id, clock.now());
    let running = await activeReplays(store, partition);
    for (let steps = 0; running.length > 0 && steps < STEPS_PER_RUN; ) {
      const unfinished: string[] = [];
      for (const id of running) {
        steps += 1;
        const isUnfinished =
          (await stepReplay(store, id, clock.now())) || (await stepCancellation({ store, producer }, id, clock.now()));
        if (isUnfinished) unfinished.push(id);
      }
      running = unfinished;
    }
  },
});
