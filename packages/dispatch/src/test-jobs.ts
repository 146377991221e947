/**
 * For tests of the scripts that take and end jobs: the store of test-deliveries.ts with a queue, an address in it, and
 * jobs.
 */
import { afterEach, beforeEach } from '@jest/globals';
import { type DeliveryJob, type EventRef, type NextJob, partitionOf } from '@posthorn/core';
import { createJobQueues, type JobQueues } from '@posthorn/queue';
import {
  deliveryOfJob,
  type FoundJob,
  type JobToEnd,
  recordSuccess,
  type Store,
  type WorkerView,
} from '@posthorn/store';
import { jobIdOf } from '@posthorn/testing';
import { deliver, event, store, subscribe, time } from '../../store/src/test-deliveries.ts';
import { takeFrom } from '../../store/src/test-take.ts';

/** A queue for each partition of the store, new for each test. */
export let jobQueues: JobQueues;
/** An active address, new for each test, and its partition. */
export let subscriptionId: string;
export let partition: number;

beforeEach(async () => {
  const onError = (error: Error) => {
    throw error;
  };
  const partitionPrefixes = [0, 1, 2, 3].map((number) => `${store.prefix}:{${number}}`);
  jobQueues = createJobQueues({ redis: store.redis, partitionPrefixes, onError });
  await jobQueues.ready();
  subscriptionId = (await subscribe()).id;
  partition = partitionOf(subscriptionId, store.partitions);
});
afterEach(() => jobQueues.close());

/** How the next job is locked. */
export const lock = (nextToken: string | undefined) => ({
  nextToken,
  lockMs: 60_000,
  nowMs: time.nowMs,
});

/** Makes a delivery with its job. */
export async function make(sent = event(), to = subscriptionId): Promise<string> {
  const [created] = await deliver([to], sent);
  return created!.deliveryId;
}

/** Another address of the same partition. */
export const neighbour = () => subscribeWhere((other) => other === partition);

/** An address of another partition. */
export const subscribeElsewhere = () => subscribeWhere((other) => other !== partition);

async function subscribeWhere(isWanted: (partition: number) => boolean): Promise<string> {
  for (;;) {
    const { id } = await subscribe();
    if (isWanted(partitionOf(id, store.partitions))) return id;
  }
}

/** The store, and the names of the scripts that it is told to run. */
export function observedStore(): { observed: Store; scripts: string[] } {
  const scripts: string[] = [];
  const redis = new Proxy(store.redis, {
    get(target, name: string) {
      if (name.startsWith('script_')) scripts.push(name);
      return Reflect.get(target, name) as unknown;
    },
  });
  return { observed: { ...store, redis }, scripts };
}

const knows = (event: EventRef): WorkerView => ({
  knownEvent: () => event,
  room: () => ({ perAddress: 10, busy: '', dueBeforeMs: 0 }),
  parked: () => undefined,
});

export async function takeOne(token: string, knownEvent?: EventRef): Promise<NextJob<FoundJob>> {
  const worker = knownEvent && knows(knownEvent);
  const [taken] = await takeFrom(store, { partition, token, limit: 1 }, { ...lock(token), worker });
  return taken!;
}

export async function take(token: string): Promise<DeliveryJob> {
  const taken = await takeOne(token);
  if (!('job' in taken)) throw new Error('no job');
  return deliveryOfJob(taken.job)!;
}

/** Takes all waiting jobs of all addresses in these partitions. */
export async function takeAll(partitions: Iterable<number>, limit: number): Promise<DeliveryJob[]> {
  const all: DeliveryJob[] = [];
  for (const each of partitions) {
    const taken = await takeFrom(store, { partition: each, token: 'token', limit }, lock('token'));
    for (const one of taken) if ('job' in one) all.push(deliveryOfJob(one.job)!);
  }
  return all;
}

/** Records that an attempt of a delivery succeeded, which ends its job. `change`: of how it is ended. */
export async function succeed(
  job: DeliveryJob,
  token: string,
  nextToken?: string,
  change: Partial<JobToEnd> = {},
  { number = 1, by = store } = {},
) {
  const delivery = { id: job.deliveryId, event: job.event, createdAtMs: time.nowMs };
  const attempt = { number, startedAtMs: time.nowMs, durationMs: 5, statusCode: 200, error: null };
  const ending = {
    ...lock(nextToken),
    jobId: jobIdOf(job),
    token,
    ...change,
  };
  return await recordSuccess(by, { delivery, attempt, limits: { maxAttempts: 6 }, lock: ending });
}
