/** The queue as Posthorn relies on it, with time in the test's hands: ids that exist are ignored, delays, locks that are lost, batches that break off. */
import type { DeliveryJob } from '@posthorn/core';
import type { JobOutcome, Producer } from '@posthorn/queue';

/** A lock lives this long after its worker has died or stands still. */
const LOCK_MS = 30_000;
/** A job whose handler threw comes back after this. */
export const AFTER_ERROR_MS = 15_000;

interface Entry {
  job: DeliveryJob;
  dueAtMs: number;
  /** Who has it in hand; undefined while it waits. */
  token: symbol | undefined;
  lostAtMs: number;
  /** Kept only to be looked at. */
  failed: boolean;
}

export interface TakenJob {
  job: DeliveryJob;
  token: symbol;
}

const idOf = ({ deliveryId, generation }: Pick<DeliveryJob, 'deliveryId' | 'generation'>) =>
  `${deliveryId}.${generation}`;

export function createBroker(now: () => number) {
  const entries = new Map<string, Entry>();
  const live = () => [...entries.values()].filter(({ failed }) => !failed);
  return {
    /** What a process uses; each operation on one job passes its gate, so that the process may stop before any of them. */
    producerFor(pass: () => Promise<void>): Producer {
      return {
        queues: [],
        ready: async () => undefined,
        async add(_partition, jobs) {
          for (const { delayMs = 0, isRetry: _, ...job } of jobs) {
            await pass();
            const id = idOf(job);
            if (entries.has(id)) continue;
            entries.set(id, { job, dueAtMs: now() + delayMs, token: undefined, lostAtMs: 0, failed: false });
          }
        },
        async missing(_partition, jobs) {
          await pass();
          return jobs.filter((job) => !entries.has(idOf(job)));
        },
        async remove(_partition, jobs) {
          for (const job of jobs) {
            await pass();
            if (entries.get(idOf(job))?.token === undefined) entries.delete(idOf(job));
          }
        },
        // Which of the jobs that are due comes first is not modelled.
        advanceRetries: async () => undefined,
        active: async () => [],
        counts: async () => ({ waiting: 0, active: 0, delayed: 0, failed: 0 }),
        close: async () => undefined,
      };
    },
    /** The job that has been due for longest and that no worker has in hand. */
    take(): TakenJob | undefined {
      const due = live().filter((entry) => entry.token === undefined && entry.dueAtMs <= now());
      const next = due.sort((a, b) => a.dueAtMs - b.dueAtMs)[0];
      if (!next) return undefined;
      next.token = Symbol('lock');
      return { job: next.job, token: next.token };
    },
    /** A worker is done with a job; refused where it has lost its lock. */
    finish({ job, token }: TakenJob, outcome: JobOutcome): void {
      const entry = entries.get(idOf(job));
      if (entry?.token !== token) return;
      entry.token = undefined;
      if (outcome.kind === 'done') entries.delete(idOf(job));
      else if (outcome.kind === 'failed') entry.failed = true;
      else entry.dueAtMs = outcome.kind === 'retry' ? now() + outcome.delayMs : outcome.untilMs;
    },
    /** The worker of these jobs renews its locks no more: once they have run out, anybody may have them. */
    lose(jobs: readonly TakenJob[]): void {
      for (const { job, token } of jobs) {
        const entry = entries.get(idOf(job));
        if (entry?.token === token) entry.lostAtMs ||= now();
      }
    },
    /** The worker of these jobs goes on: it renews those locks that nobody has taken. */
    keep(jobs: readonly TakenJob[]): void {
      for (const { job, token } of jobs) {
        const entry = entries.get(idOf(job));
        if (entry?.token === token) entry.lostAtMs = 0;
      }
    },
    /** Hands out what was lost, as the queue's own check does. */
    takeBackLost(): void {
      for (const entry of live()) {
        if (entry.lostAtMs === 0 || now() - entry.lostAtMs < LOCK_MS) continue;
        entry.token = undefined;
        entry.lostAtMs = 0;
      }
    },
    /** When the next waiting job is due. */
    nextDueAtMs(): number | undefined {
      const waiting = live().filter(({ token }) => token === undefined);
      return waiting.length === 0 ? undefined : Math.min(...waiting.map(({ dueAtMs }) => dueAtMs));
    },
    /** Deliveries that have a job. */
    deliveries: () => live().map(({ job }) => job.deliveryId),
  };
}
