/** A model of the queue with the test's clock: it ignores ids that exist, and has delays, lost locks and interrupted batches. */
import type { DeliveryJob } from '@posthorn/core';
import type { JobOutcome, Producer } from '@posthorn/queue';

/** A lock expires this long after its worker has died or stopped. */
const LOCK_MS = 30_000;
/** A job whose handler threw returns after this. */
export const AFTER_ERROR_MS = 15_000;

interface Entry {
  job: DeliveryJob;
  dueAtMs: number;
  /** The lock of the worker that has taken it; undefined while it waits. */
  token: symbol | undefined;
  lostAtMs: number;
  /** Kept for Bull Board only. */
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
  const add = (job: DeliveryJob, delayMs: number) => {
    const id = idOf(job);
    if (entries.has(id)) return;
    entries.set(id, { job, dueAtMs: now() + delayMs, token: undefined, lostAtMs: 0, failed: false });
  };
  const live = () => [...entries.values()].filter(({ failed }) => !failed);
  return {
    /** The producer of a process. Each operation on one job passes the process's gate, so that the process may stop before it. */
    producerFor(pass: () => Promise<void>): Producer {
      return {
        queues: [],
        ready: async () => undefined,
        async add(_partition, jobs) {
          for (const { delayMs = 0, isRetry: _, ...job } of jobs) {
            await pass();
            add(job, delayMs);
          }
        },
        async missing(_partition, jobs) {
          await pass();
          return jobs.filter((job) => !entries.has(idOf(job)));
        },
        async remove<J extends Parameters<typeof idOf>[0]>(_partition: number, jobs: readonly J[]) {
          const taken: J[] = [];
          for (const job of jobs) {
            await pass();
            if (entries.get(idOf(job))?.token === undefined) entries.delete(idOf(job));
            else taken.push(job);
          }
          return taken;
        },
        // The order of due jobs is not modelled.
        advanceRetries: async () => undefined,
        active: async () => [],
        counts: async () => ({ waiting: 0, active: 0, delayed: 0, failed: 0 }),
        close: async () => undefined,
      };
    },
    /** Adds the jobs that a script has made in the same step as its deliveries, or their release. */
    addMade: (jobs: readonly DeliveryJob[]) => {
      for (const job of jobs) add(job, 0);
    },
    /** Takes the job that has been due for longest and that no worker has. */
    take(): TakenJob | undefined {
      const due = live().filter((entry) => entry.token === undefined && entry.dueAtMs <= now());
      const next = due.sort((a, b) => a.dueAtMs - b.dueAtMs)[0];
      if (!next) return undefined;
      next.token = Symbol('lock');
      return { job: next.job, token: next.token };
    },
    /** Ends a worker's job; ignored if the worker has lost its lock. */
    finish({ job, token }: TakenJob, outcome: JobOutcome): void {
      const entry = entries.get(idOf(job));
      if (entry?.token !== token) return;
      entry.token = undefined;
      if (outcome.kind === 'done') entries.delete(idOf(job));
      else if (outcome.kind === 'failed') entry.failed = true;
      else entry.dueAtMs = outcome.kind === 'retry' ? now() + outcome.delayMs : outcome.untilMs;
    },
    /** The worker of these jobs stops renewing its locks: after they have expired, any worker may take the jobs. */
    lose(jobs: readonly TakenJob[]): void {
      for (const { job, token } of jobs) {
        const entry = entries.get(idOf(job));
        if (entry?.token === token) entry.lostAtMs ||= now();
      }
    },
    /** The worker of these jobs continues: it renews the locks that no other worker has. */
    keep(jobs: readonly TakenJob[]): void {
      for (const { job, token } of jobs) {
        const entry = entries.get(idOf(job));
        if (entry?.token === token) entry.lostAtMs = 0;
      }
    },
    /** Makes jobs with expired locks available again, like the queue's own check. */
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
