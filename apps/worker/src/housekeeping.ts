/** Looks after what no job does: lets retries through, releases lanes, runs bulk replays, ends what has expired, finds lost jobs, clears deleted subscriptions, trims indexes. */
import { release, rescue } from '@posthorn/dispatch';
import type { Producer } from '@posthorn/queue';
import type { Clock, Logger } from '@posthorn/runtime';
import {
  addressesToRelease,
  closeSubscription,
  closingSubscriptions,
  endDeliveries,
  heldBefore,
  holdLease,
  pruneFinished,
  runningReplays,
  type Store,
  stepReplay,
} from '@posthorn/store';

export interface HousekeepingContext {
  store: Store;
  producer: Producer;
  clock: Clock;
  logger: Logger;
  /** Names this process in the lease. */
  holder: string;
  /** Held deliveries released a second to one address after a resume. */
  releasePerSecond: number;
  /** A delivery this old should have its job: any process that was about to add it has done so, or died. Default 30 s. */
  jobExpectedAfterMs?: number | undefined;
}

/** How often the housekeeper comes by. */
export const ROUND_EVERY_MS = 500;
/** The lease of a housekeeper that died ends after this. */
const LEASE_MS = 5_000;
/** Every so many rounds lanes are looked at whose last attempt ended before something was parked. */
const STRAGGLER_ROUNDS = 4;
/** One delivery each: enough to go on with, since an attempt that ends brings the next ones back. */
const STRAGGLERS_A_ROUND = 200;
/** Every so many rounds the slower work is done. */
const SLOW_ROUNDS = 20;
const JOB_EXPECTED_AFTER_MS = 30_000;
/** Retries let before first attempts in a round, where those wait: a queue that is never empty must not keep retries back for ever. */
const RETRIES_A_ROUND = 50;
const CHUNK = 500;
/** The most chunks of one index looked at in one round, so that a round stays short. */
const CHUNKS_A_ROUND = 20;
/** Of 100 failed deliveries each. */
const REPLAY_STEPS_A_ROUND = 10;
/** Deliveries looked at for their job in one round: each costs Redis more than an entry of an index, and others wait meanwhile. */
const LOOKED_AT_A_ROUND = 100;

/** One housekeeper over several partitions, with the places where its sweeps go on. */
export function createHousekeeper(context: HousekeepingContext, partitions: readonly number[]) {
  let round = 0;
  /** Where the sweeps for lost jobs go on that have begun, by partition and status. */
  const sweeps = new Map<string, number>();
  return {
    /** One round over the partitions whose lease this process gets. Each piece of work may be repeated at any time. */
    async keepHouse(): Promise<void> {
      const slow = round % SLOW_ROUNDS === 0;
      const stragglers = round % STRAGGLER_ROUNDS === 0;
      round += 1;
      for (const partition of partitions) {
        if (!(await holdLease(context.store, 'maintenance', partition, context.holder, LEASE_MS))) continue;
        await context.producer.advanceRetries(partition, RETRIES_A_ROUND);
        await releaseHeld(context, partition);
        if (stragglers) await releaseStragglers(context, partition);
        await runReplays(context, partition);
        await closeDeleted(context, partition);
        await findLostJobs(context, partition, sweeps, slow);
        if (!slow) continue;
        await endExpired(context, partition);
        await pruneIndexes(context, partition);
      }
    },
  };
}

/** After a resume: a bounded number a round, so that the receiver is not flooded. */
async function releaseHeld(context: HousekeepingContext, partition: number): Promise<void> {
  const perRound = Math.max(1, Math.round((context.releasePerSecond * ROUND_EVERY_MS) / 1000));
  for (const subscriptionId of await addressesToRelease(context.store, partition, 'held')) {
    await release(context, 'held', subscriptionId, perRound, context.clock.now());
  }
}

/**
 * Parked deliveries are released as attempts end. Those parked just after the last one ended are found here, and those of slow
 * addresses that wait for each other, in any order, so that each has its turn.
 */
async function releaseStragglers(context: HousekeepingContext, partition: number): Promise<void> {
  const waiting = await addressesToRelease(context.store, partition, 'parked');
  for (let left = Math.min(waiting.length, STRAGGLERS_A_ROUND); left > 0; left--) {
    const [subscriptionId] = waiting.splice(Math.floor(Math.random() * waiting.length), 1);
    await release(context, 'parked', subscriptionId!, 1, context.clock.now());
  }
}

/** Bulk replays, a bounded number of steps a round, in turns: one large replay does not hold up another. */
async function runReplays({ store, clock }: HousekeepingContext, partition: number): Promise<void> {
  let running = await runningReplays(store, partition);
  for (let steps = 0; running.length > 0 && steps < REPLAY_STEPS_A_ROUND; ) {
    const unfinished: string[] = [];
    for (const id of running) {
      steps += 1;
      if (await stepReplay(store, id, clock.now())) unfinished.push(id);
    }
    running = unfinished;
  }
}

/** Ends the deliveries of deleted subscriptions, for a console that died after the delete. */
async function closeDeleted({ store, producer, clock }: HousekeepingContext, partition: number): Promise<void> {
  for (const subscriptionId of await closingSubscriptions(store, partition)) {
    await closeSubscription(store, subscriptionId, clock.now(), producer.remove);
  }
}

/** Held deliveries older than the retention end as failed (interface 6.2). */
async function endExpired({ store, clock, logger }: HousekeepingContext, partition: number): Promise<void> {
  for (let chunk = 0; chunk < CHUNKS_A_ROUND; chunk++) {
    const nowMs = clock.now();
    const old = await heldBefore(store, partition, nowMs - store.retentionMs, CHUNK);
    const ended = await endDeliveries(store, partition, old, 'expired', nowMs, { onlyHeld: true });
    if (ended.length > 0)
      logger.warn({ deliveries: ended.length, reason: 'expired' }, 'delivery.ended_without_attempt');
    if (old.length < CHUNK) return;
  }
}

/**
 * A delivery that waits with no job behind it: a process died between the record and the queue. It gets a new job. A sweep that is over
 * begins again when `begin` says so.
 */
async function findLostJobs(
  { store, producer, clock, logger, jobExpectedAfterMs = JOB_EXPECTED_AFTER_MS }: HousekeepingContext,
  partition: number,
  sweeps: Map<string, number>,
  begin: boolean,
): Promise<void> {
  for (const status of ['pending', 'waiting_for_retry'] as const) {
    const sweep = `${partition}:${status}`;
    const offset = sweeps.get(sweep) ?? (begin ? 0 : undefined);
    if (offset === undefined) continue;
    const nowMs = clock.now();
    const range = { beforeMs: nowMs - jobExpectedAfterMs, offset, limit: LOOKED_AT_A_ROUND };
    const { rescued, next } = await rescue({ store, producer }, partition, status, range, nowMs);
    if (rescued > 0) logger.warn({ deliveries: rescued }, 'delivery.lost_job_found');
    if (next === undefined) sweeps.delete(sweep);
    else sweeps.set(sweep, next);
  }
}

async function pruneIndexes({ store, clock }: HousekeepingContext, partition: number): Promise<void> {
  for (const status of ['succeeded', 'failed'] as const) {
    let offset: number | undefined = 0;
    for (let chunk = 0; chunk < CHUNKS_A_ROUND && offset !== undefined; chunk++) {
      offset = await pruneFinished(store, partition, status, clock.now() - store.retentionMs, offset);
    }
  }
}
