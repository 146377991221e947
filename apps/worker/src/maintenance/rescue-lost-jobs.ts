/** Maintenance duty: gives a new job to deliveries that wait for one that is gone. */
import { rescueJobs } from '@posthorn/store';
import type { Duty, DutyContext } from './duty.ts';

/** Time between the starts of two sweeps. A sweep takes one part in each run. */
const SWEEP_EVERY_MS = 10_000;
/**
 * Deliveries in a part: a few milliseconds of Redis. `maxRead` limits those whose job is looked for. Deliveries in a
 * lane cost far less, and the delivery with the lost job may be behind millions of them.
 */
const LIMITS = { maxLookedAt: 5_000, maxRead: 500 };
/** A younger delivery may still get its job from a process of 0.1.0. */
const JOB_EXPECTED_AFTER_MS = 30_000;

interface Sweep {
  startedAtMs: number;
  isDone: boolean;
  /** The entry after which the next part begins; undefined at the beginning. */
  after: Awaited<ReturnType<typeof rescueJobs>>['next'];
}
const NEVER: Sweep = { startedAtMs: Number.NEGATIVE_INFINITY, isDone: true, after: undefined };

/**
 * Sweeps the deliveries that need a job. The script that finds no job also adds the new one, so of two processes at
 * once only one adds it. A new job has a new generation: if the old job turns up after all, it does nothing. A delivery
 * that can't be looked at fails the run, which says so, but not the sweep: the next run goes on after it.
 */
export function rescueLostJobs(context: DutyContext): Duty {
  const { store, clock, logger, jobExpectedAfterMs = JOB_EXPECTED_AFTER_MS } = context;
  const sweeps = new Map<string, Sweep>();

  return {
    name: 'rescue_lost_jobs',
    everyMs: 500,
    async run(partition) {
      for (const status of ['pending', 'waiting_for_retry'] as const) {
        const key = `${partition}:${status}`;
        let sweep = sweeps.get(key) ?? NEVER;
        if (sweep.isDone) {
          if (performance.now() - sweep.startedAtMs < SWEEP_EVERY_MS) continue;
          sweep = { startedAtMs: performance.now(), isDone: false, after: undefined };
        }
        const nowMs = clock.now();
        const range = { beforeMs: nowMs - jobExpectedAfterMs, after: sweep.after, ...LIMITS };
        const { rescued, next, problem } = await rescueJobs(store, partition, status, range, nowMs);
        if (rescued > 0) logger.warn({ deliveries: rescued }, 'delivery.rescued');
        sweeps.set(key, { ...sweep, isDone: next === undefined, after: next });
        if (problem !== undefined) throw new Error(`Could not rescue ${problem}`);
      }
    },
  };
}
