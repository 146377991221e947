/** Takes jobs from BullMQ's queue and ends them, each in one step with the other changes to their deliveries. */
import {
  type DeliveryJob,
  type EventRef,
  type LockedJob,
  type LockTimes,
  type NextJob,
  readJobId,
  type Take,
} from '@posthorn/core';
import { DELIVERY_PLACES } from '../constants.ts';
import { partitionPrefix } from '../keys.ts';
import { withCircuitBreaker } from '../redis/circuit-breaker.ts';
import { writeAtOnce } from '../redis/join-writes.ts';
import { type FoundJob, runScript, type ScriptResult, type ScriptValues } from '../scripts.ts';
import type { Store } from '../store.ts';

/** What a script that takes jobs has to know of the worker. */
export interface WorkerView {
  /** The event that the worker has in memory. */
  knownEvent(): EventRef | undefined;
  /**
   * How many more attempts it may have in flight to each address. If an address has no room, its delivery is parked
   * instead of its job being taken.
   */
  room(): Room;
  /** Called with the addresses whose deliveries were parked. */
  parked(subscriptionIds: readonly string[]): void;
}

export interface Room {
  /** More attempts to each address that `busy` does not name. */
  perAddress: number;
  /** More attempts to each busy one: `<subscription> <attempts>`, separated by spaces. */
  busy: string;
  /** Attempts that were due before this are overdue, in milliseconds since 1970. */
  dueBeforeMs: number;
}

const NO_LIMIT: Room = { perAddress: Number.MAX_SAFE_INTEGER, busy: '', dueBeforeMs: 0 };

/** The worker for which a script takes jobs. Without one, any number may be taken, and nothing is parked. */
interface ForWorker {
  worker?: WorkerView | undefined;
}

/** A job to end by a script which also takes the next ones. */
export interface JobToEnd extends LockedJob, ForWorker {
  /**
   * This many parked deliveries may be taken in place of a job of the queue. Undefined: one, if the queue has none for
   * this worker.
   */
  parkedFirst?: number | undefined;
}

/** The arguments about the worker and the locks for scripts that take jobs. */
export function ofWorker({ spansPartitions }: Store, { lockMs, nowMs, worker }: LockTimes & ForWorker) {
  return { lockMs, nowMs, spansPartitions, knownEvent: worker?.knownEvent(), ...(worker?.room() ?? NO_LIMIT) };
}

/** Tells the worker the addresses whose deliveries a script has parked. */
export function tellParked({ worker }: ForWorker, parkedAddresses: readonly string[]): void {
  if (parkedAddresses.length > 0) worker?.parked(parkedAddresses);
}

/**
 * Takes and locks the next jobs of each partition in `takes`, and of each one in `marked` that has a marker, which is
 * removed. Returns for each, first those of `takes`, the jobs or an error, which is that partition's alone. If fewer
 * than `limit` wait, the last one says when the next is due; if a list is short and does not say it, jobs may be left.
 * In Redis Cluster `takes` is one partition, and `marked` is empty.
 */
export async function takeJobs(
  store: Store,
  takes: readonly Take[],
  marked: readonly Take[],
  lock: LockTimes & ForWorker,
): Promise<(NextJob<FoundJob>[] | Error)[]> {
  const first = partitionPrefix(store, takes[0]?.partition ?? 0);
  const groupOf = ({ partition, token, limit }: Take) => ({ home: partitionPrefix(store, partition), token, limit });
  const values = { ...ofWorker(store, lock), takes: takes.map(groupOf), marked: marked.map(groupOf) };
  // Written at once: other commands of this turn of the event loop must not delay it.
  const { taken, parkedAddresses } = await writeAtOnce(() => runScript(store, 'takeJobs', first, values));
  tellParked(lock, parkedAddresses);
  return taken;
}

/**
 * Returns for each partition when its next job is due, in milliseconds since 1970 (0: one waits; undefined: there is
 * none), or an error, which is that partition's alone. Takes nothing.
 */
export async function lookForJobs(
  store: Store,
  partitions: readonly number[],
): Promise<(number | undefined | Error)[]> {
  const homes = partitions.map((partition) => ({ home: partitionPrefix(store, partition) }));
  const look = (some: typeof homes) => runScript(store, 'lookForJobs', some[0]?.home ?? '', { partitions: some });
  if (store.spansPartitions) return await look(homes);
  const lookAt = (one: (typeof homes)[number]) => withCircuitBreaker(store, one.home, () => look([one]));
  return (await Promise.all(homes.map((one) => lookAt(one).catch((error: Error) => [error])))).flat();
}

/**
 * Ends the job of a delivery that needs it no longer, and takes the next one of its partition, in one step. `code`: 0,
 * or BullMQ's error code where the job could not be ended.
 */
export async function finishJob(
  store: Store,
  partition: number,
  lock: JobToEnd,
): Promise<Omit<ScriptResult<'finishJob'>, 'parkedAddresses'>> {
  const values = { ...lock, ...ofWorker(store, lock) };
  const { parkedAddresses, ...ended } = await runScript(store, 'finishJob', partitionPrefix(store, partition), values);
  tellParked(lock, parkedAddresses);
  return ended;
}

/**
 * Renews the lease of a worker on its jobs in a partition, if there is an `owner`, and takes over the jobs of dead
 * workers: those that have not renewed their lease in `maxChecks` checks, of which there is at most one in `checkMs`
 * (0: none now). Puts back at most `limit` jobs, in a check or where it `goesOn` with what the last call left. `state`:
 * of the caller's lease; `lost`: it had none, so jobs that it took before are lost, and has one as `nextOwner` now.
 */
export async function watchWorkers(
  store: Store,
  partition: number,
  watch: ScriptValues<'watchWorkers'>,
): Promise<ScriptResult<'watchWorkers'>> {
  return await runScript(store, 'watchWorkers', partitionPrefix(store, partition), watch);
}

/**
 * Puts back the jobs of a partition that were taken with one of these tokens, but for those that the caller knows of.
 * Resolves to how many.
 */
export async function putBackLost(
  store: Store,
  partition: number,
  tokens: readonly string[],
  knownIds: readonly string[],
): Promise<number> {
  const values = { lost: tokens.map((token) => ({ token })), known: knownIds.map((id) => ({ id })) };
  return await runScript(store, 'putBackLost', partitionPrefix(store, partition), values);
}

/** The delivery of a job that was taken; undefined if it is gone. */
export function deliveryOfJob({ id, delivery }: FoundJob): DeliveryJob | undefined {
  if (!delivery) return undefined;
  const { deliveryId, generation } = readJobId(id);
  return {
    deliveryId,
    generation,
    subscriptionId: delivery[DELIVERY_PLACES.s] ?? '',
    event: delivery[DELIVERY_PLACES.e] as EventRef,
  };
}
