/** Maintenance duty: raises the stored format after an upgrade, once no process of the release before runs any more. */
import { version } from '@posthorn/runtime';
import { advanceFormat } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** An unchanged state is logged once in this time. */
const LOG_EVERY_MS = 600_000;

/**
 * The record is one for all partitions, so only the first partition's run does something. Two processes may do this at
 * once: one of them raises.
 */
export function raiseFormat({ store, clock, logger, rollbackWindowMs }: DutyContext): Duty {
  let logged = { state: '', atMs: Number.NEGATIVE_INFINITY };
  return {
    name: 'raise_format',
    everyMs: 10_000,
    async run(partition) {
      if (partition !== 0) return;
      const decision = await advanceFormat(store, { windowMs: rollbackWindowMs, version });
      if (decision.raisedTo !== undefined) logger.info({ format: decision.raisedTo }, 'format.raised');
      if (decision.kind === 'newest' || decision.kind === 'due') return;
      const state = decision.kind === 'waiting' ? decision.processes.join() : decision.kind;
      if (state === logged.state && clock.now() - logged.atMs < LOG_EVERY_MS) return;
      logged = { state, atMs: clock.now() };
      if (decision.kind === 'waiting') logger.info({ processes: decision.processes }, 'format.waiting');
      else logger.info({ raises_at: new Date(decision.raisesAtMs).toISOString() }, 'format.settling');
    },
  };
}
