/**
 * The real queue under the test's clock: jobs are taken, ended and put back with production's scripts. Only the loop of
 * packages/queue and its leases are modelled: the test says when a worker takes a job, and when others get those that
 * it has lost.
 */
import { expect } from '@jest/globals';
import { type DeliveryJob, HOUR_MS, partitionOfId, readJobId } from '@posthorn/core';
import type { EndDeliveryJob } from '@posthorn/dispatch';
import { type Claim, createJobQueues, isJobGone, type JobOutcome } from '@posthorn/queue';
import {
  allPartitions,
  deliveryOfJob,
  type FoundJob,
  finishJob,
  lookForJobs,
  partitionPrefix,
  type Store,
  takeJobs,
  type WorkerView,
} from '@posthorn/store';
import type { TakenJob } from '../../apps/worker/src/attempts/attempt-in-flight.ts';
import { createEndings } from '../../packages/queue/src/endings.ts';
import { activity, inOneStep, type Process, type Task } from './processes.ts';

/** The jobs of a worker are put back this long after it has died or stopped. */
const LOST_AFTER_MS = 30_000;
/** Longer than a story: a lock ends by the test's clock only. */
const LOCK_MS = HOUR_MS;
/** A job whose handler threw returns after this. */
const AFTER_ERROR_MS = 15_000;
/** How many further jobs a worker may take with the end of one. */
const ROOM = 1;

export interface WorkerOptions {
  process: Process;
  /** The store as the process uses it. */
  store: Store;
  view: WorkerView;
  handle(job: DeliveryJob, taken: Required<TakenJob>, task: Task): Promise<JobOutcome>;
}

/** Takes a job. Resolves to what begins it; undefined if none waits. */
export type TakeJob = () => Promise<(() => void) | undefined>;

/** Whether a worker still has its jobs. */
interface Owner {
  name: string;
  lostAtMs: number | undefined;
  /** Increased when others get its jobs. */
  generation: number;
}

export function createConsumers(raw: Store, now: () => number) {
  const partitionPrefixes = allPartitions(raw).map((partition) => partitionPrefix(raw, partition));
  const onError = (error: unknown) => {
    activity.failure ??= error;
  };
  const { redis } = raw;
  const queue = { redis, partitionPrefixes, onError };
  const jobQueues = createJobQueues(queue);
  const endings = createEndings({ ...queue, lockMs: LOCK_MS, stalledCheckMs: LOST_AFTER_MS });
  const owners = new Map<Process, Owner>();
  let workers = 0;
  let takes = 0;

  /** Removes the locks of a worker, so that BullMQ's check for stalled jobs puts its jobs back. */
  async function unlock({ name }: Owner): Promise<void> {
    for (const prefix of partitionPrefixes) {
      const keys = (await redis.lrange(`${prefix}:deliveries:active`, 0, -1)).map((id) => lockKey(prefix, id));
      const tokens = keys.length > 0 ? await redis.mget(keys) : [];
      const lost = keys.filter((_, i) => tokens[i]?.startsWith(`${name}:`));
      if (lost.length > 0) await redis.del(lost);
    }
  }

  return {
    ready: () => Promise.all([jobQueues.ready(), endings.ready()]),
    close: () => Promise.all([jobQueues.close(), endings.close()]),

    // The order of due jobs is not modelled.
    jobQueues: { ...jobQueues, advanceRetries: async () => undefined },

    /**
     * The consumer of a worker. Every second job that ends takes the next one of its queue, and one that is parked may
     * follow each.
     */
    consumerOf({ process, store, view: worker, handle }: WorkerOptions): TakeJob {
      const owner: Owner = { name: `worker${workers++}`, lostAtMs: undefined, generation: 0 };
      owners.set(process, owner);
      let tokens = 0;
      let ends = 0;
      const newToken = () => `${owner.name}:${tokens++}`;
      const hasLostSince = (generation: number) => owner.generation !== generation;
      const newClaim = (generation: number): Claim => ({
        isSure: () => owner.lostAtMs === undefined && !hasLostSince(generation),
        async confirm() {
          await process.pass();
          return !hasLostSince(generation);
        },
      });

      function begin(found: FoundJob, token: string, generation: number, stoodStill = false): void {
        const { deliveryId } = readJobId(found.id);
        const partition = partitionOfId(deliveryId, raw.partitions);
        process.run(deliveryId, async (task) => {
          task.stoodStill = stoodStill;
          let beginNext: (() => void) | undefined;
          const end: EndDeliveryJob = async (move) => {
            const next = newToken();
            const nextToken = ends++ % 2 === 0 ? next : undefined;
            const lock = { jobId: found.id, token, nextToken, laneToken: next };
            const ended = await move({ ...lock, lockMs: LOCK_MS, nowMs: now(), worker }, ROOM);
            if (ended.code !== 0)
              expect([found.id, ended.code, hasLostSince(generation)]).toEqual([found.id, ended.code, true]);
            const jobs = [...(ended.next && 'job' in ended.next ? [ended.next.job] : []), ...(ended.parkedJobs ?? [])];
            const claimed = owner.generation;
            // From here on `stoodStill` is about the next jobs: whether what was read of them may be outdated.
            task.stoodStill = false;
            beginNext = () => {
              for (const job of jobs) begin(job, next, claimed, task.stoodStill);
            };
            return ended;
          };
          const settle = async (outcome: Exclude<JobOutcome, { kind: 'done' }>) => {
            await inOneStep(process.pass, () => endings.settle(partition, found.id, token, outcome)).catch(
              (error: Error) => {
                if (!isJobGone(error) || !hasLostSince(generation)) throw error;
              },
            );
          };
          const job = deliveryOfJob(found);
          const taken = { found, end, claim: newClaim(generation) };
          const outcome = await (job ? handle(job, taken, task) : Promise.resolve<JobOutcome>({ kind: 'done' })).catch(
            (error: unknown): JobOutcome => {
              // A failed expectation is reported by the test; the consumer would retry after any other error.
              onError(error);
              return { kind: 'retry', endedAtMs: Date.now(), delayMs: AFTER_ERROR_MS, reason: 'internal error' };
            },
          );
          if (!beginNext) {
            if (outcome.kind === 'done') await end((lock) => finishJob(store, partition, lock));
            else await settle(outcome);
          }
          beginNext?.();
        });
      }

      return async () => {
        const first = takes++;
        for (const partition of allPartitions(raw)) {
          const take = { partition: (first + partition) % raw.partitions, token: newToken(), limit: 1 };
          const [taken] = await takeJobs(raw, [take], [], { lockMs: LOCK_MS, nowMs: now(), worker });
          if (taken instanceof Error) throw taken;
          const [one] = taken ?? [];
          const { generation } = owner;
          if (one && 'job' in one) return () => begin(one.job, take.token, generation);
        }
        return undefined;
      };
    },

    /** A worker has died or stopped: others get its jobs after `LOST_AFTER_MS`. */
    lose(process: Process): void {
      const owner = owners.get(process);
      if (owner) owner.lostAtMs ??= now();
    },

    /** A worker goes on, with the jobs that no other one has got. */
    keep(process: Process): void {
      const owner = owners.get(process);
      if (owner) owner.lostAtMs = undefined;
    },

    /** Puts the jobs of workers that were lost for long enough back into the queue. */
    async putBackLost(): Promise<void> {
      const isLost = ({ lostAtMs }: Owner) => lostAtMs !== undefined && now() - lostAtMs >= LOST_AFTER_MS;
      const lost = [...owners].filter(([, owner]) => isLost(owner));
      if (lost.length === 0) return;
      for (const [process, owner] of lost) {
        await unlock(owner);
        owner.generation += 1;
        if (process.dead) owners.delete(process);
      }
      // The first check notes the active jobs, the second one puts back those that have no lock.
      for (let check = 0; check < 2; check++) {
        await redis.del(partitionPrefixes.map((prefix) => `${prefix}:deliveries:stalled-check`));
        await endings.checkStalled();
      }
    },

    /** When the next waiting job is due. */
    async nextDueAtMs(): Promise<number | undefined> {
      const due = await lookForJobs(raw, allPartitions(raw));
      const known = due.filter((one) => typeof one === 'number');
      return known.length === 0 ? undefined : Math.min(...known);
    },

    /** The jobs that wait or are active. */
    async jobs(): Promise<string[]> {
      const all = await Promise.all(
        partitionPrefixes.map(async (prefix) => {
          const key = (name: string) => `${prefix}:deliveries:${name}`;
          const lists = ['wait', 'active'].map((name) => redis.lrange(key(name), 0, -1));
          const sets = ['prioritized', 'delayed'].map((name) => redis.zrange(key(name), 0, '-1'));
          return (await Promise.all([...lists, ...sets])).flat();
        }),
      );
      return all.flat();
    },
  };
}

const lockKey = (prefix: string, id: string) => `${prefix}:deliveries:${id}:lock`;
