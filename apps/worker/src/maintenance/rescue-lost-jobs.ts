/** Maintenance duty: gives a new job to deliveries that wait for one that is gone. */
import { rescue } from '@posthorn/dispatch';
import type { Duty, DutyContext } from './duty.ts';

/** Time between the starts of two sweeps. A sweep takes one page in each run. */
const SWEEP_EVERY_MS = 10_000;
/** Deliveries in a page. Each costs Redis more than an index entry, and other commands wait meanwhile. */
const PAGE = 100;
const JOB_EXPECTED_AFTER_MS = 30_000;

interface Sweep {
  startedAtMs: number;
  /** Where the next page begins; undefined when the sweep is finished. */
  offset: number | undefined;
}
const NEVER: Sweep = { startedAtMs: Number.NEGATIVE_INFINITY, offset: undefined };

/**
 * Sweeps the deliveries that need a job. A script gives a delivery a new generation only if its generation is still the
 * one whose job is missing, so of two processes at once one adds the job.
 */
export function rescueLostJobs(context: DutyContext): Duty {
  const { store, jobQueues, clock, logger, jobExpectedAfterMs = JOB_EXPECTED_AFTER_MS } = context;
  const sweeps = new Map<string, Sweep>();

  const rescuePage = async (partition: number, status: 'pending' | 'waiting_for_retry', offset: number) => {
    const nowMs = clock.now();
    const range = { beforeMs: nowMs - jobExpectedAfterMs, offset, limit: PAGE };
    const { rescued, next } = await rescue({ store, jobQueues }, partition, status, range, nowMs);
    if (rescued > 0) logger.warn({ deliveries: rescued }, 'delivery.rescued');
    return next;
  };

  return {
    name: 'rescue_lost_jobs',
    everyMs: 500,
    async run(partition) {
      for (const status of ['pending', 'waiting_for_retry'] as const) {
        const key = `${partition}:${status}`;
        let { startedAtMs, offset } = sweeps.get(key) ?? NEVER;
        if (offset === undefined && performance.now() - startedAtMs >= SWEEP_EVERY_MS) {
          startedAtMs = performance.now();
          offset = 0;
        }
        if (offset === undefined) continue;
        sweeps.set(key, { startedAtMs, offset: await rescuePage(partition, status, offset) });
      }
    },
  };
}
