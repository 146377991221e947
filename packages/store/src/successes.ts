/** Records the successes of one turn of the event loop with one script: a call costs a worker and Redis more than what is done in it for one delivery. */
import { DEFAULT_MAX_ATTEMPTS, StorageUnavailable } from '@posthorn/core';
import { type EndedJob, ofWorker, tellParked } from './jobs.ts';
import { runScript, type ScriptResult } from './scripts.ts';
import type { Store } from './store.ts';

/** Successes recorded by one script: about a millisecond of Redis, in which nobody else is served. */
const MAX_TOGETHER = 16;

/** An attempt that succeeded, and the job that ends with it. */
export interface Success {
  /** The prefix of the delivery's partition. */
  prefix: string;
  id: string;
  number: number;
  attempt: string;
  endedAtMs: number;
  expiresAtMs: number;
  /** The same for all of a process. */
  maxAttempts: number;
  response: string | undefined;
  responsesUntilMs: number | undefined;
  lock: EndedJob;
}

export type EndedSuccess = ScriptResult<'recordSuccesses'>['ended'][number];

interface Waiting {
  success: Success;
  resolve: (ended: EndedSuccess) => void;
  reject: (error: unknown) => void;
}

/** What waits for the end of the turn, by what one script may use: everything, or in Redis Cluster one partition. */
const waitingOf = new WeakMap<Store, Map<string, Waiting[]>>();

/** Records a success with the others of this turn of the event loop. May be repeated. Throws the error of Redis. */
export function recordTogether(store: Store, success: Success): Promise<EndedSuccess> {
  let groups = waitingOf.get(store);
  if (!groups) {
    groups = new Map();
    waitingOf.set(store, groups);
  }
  return gather(store, groups, store.spansPartitions ? '' : success.prefix, success);
}

function gather(store: Store, groups: Map<string, Waiting[]>, name: string, success: Success): Promise<EndedSuccess> {
  return new Promise((resolve, reject) => {
    const waiting = groups.get(name) ?? [];
    waiting.push({ success, resolve, reject });
    const record = () => {
      // A full one has been recorded already, and others may wait since.
      if (groups.get(name) !== waiting) return;
      groups.delete(name);
      void recordAll(store, waiting);
    };
    if (waiting.length === MAX_TOGETHER) record();
    else if (waiting.length === 1) {
      groups.set(name, waiting);
      setImmediate(record);
    }
  });
}

async function recordAll(store: Store, waiting: readonly Waiting[]): Promise<void> {
  try {
    const ended = await run(
      store,
      waiting.map(({ success }) => success),
    );
    for (const [i, one] of ended.entries()) waiting[i]?.resolve(one);
  } catch (error) {
    // What is wrong with one of them must not hold up the others. Those that were recorded are recorded as repeated now.
    const isOneAtFault = waiting.length > 1 && !(error instanceof StorageUnavailable);
    for (const one of waiting) {
      if (isOneAtFault) await recordAll(store, [one]);
      else one.reject(error);
    }
  }
}

async function run(store: Store, successes: readonly Success[]): Promise<EndedSuccess[]> {
  const last = successes.at(-1);
  if (!last) return [];
  const { prefix, maxAttempts, lock } = last;
  const { ended, parkedAddresses } = await runScript(store, 'recordSuccesses', prefix, {
    maxAttempts: maxAttempts === DEFAULT_MAX_ATTEMPTS ? undefined : maxAttempts,
    retentionMs: store.retentionMs,
    lockMs: lock.lockMs,
    nowMs: lock.nowMs,
    ...ofWorker(store, lock),
    successes: successes.map((success) => ({
      ...success,
      ...success.lock,
      laneToken: success.lock.laneToken,
      home: success.prefix === prefix ? undefined : success.prefix,
    })),
  });
  tellParked(lock, parkedAddresses);
  return ended;
}
