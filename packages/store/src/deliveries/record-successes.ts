/**
 * Records the successes of one turn of the event loop with one script: the call itself costs a worker and Redis more
 * than its work for one delivery.
 */
import { DEFAULT_MAX_ATTEMPTS } from '@posthorn/core';
import { joinCalls } from '../redis/join-calls.ts';
import { runScript, type ScriptResult } from '../scripts.ts';
import type { Store } from '../store.ts';
import { type JobToEnd, ofWorker, tellParked } from './jobs.ts';

/** Successes recorded by one script: about a millisecond, in which Redis serves no other client. */
const MAX_TOGETHER = 16;

/** An attempt that succeeded, and the job that ends with it. */
export interface Success {
  /** The prefix of the delivery's partition. */
  home: string;
  id: string;
  number: number;
  attempt: string;
  endedAtMs: number;
  expiresAtMs: number;
  /** The same for all successes of a process. */
  maxAttempts: number;
  response: string | undefined;
  responsesUntilMs: number | undefined;
  lock: JobToEnd;
}

export type EndedSuccess = ScriptResult<'recordSuccesses'>['ended'][number];

/** Records a success with the others of this turn of the event loop. May be repeated. Throws the error of Redis. */
export const recordTogether = joinCalls<Success, EndedSuccess>({
  max: MAX_TOGETHER,
  prefixOf: ({ home }) => home,
  run,
});

async function run(
  store: Store,
  successes: readonly Success[],
  { home, maxAttempts, lock }: Success,
): Promise<EndedSuccess[]> {
  const { ended, parkedAddresses } = await runScript(store, 'recordSuccesses', home, {
    maxAttempts: maxAttempts === DEFAULT_MAX_ATTEMPTS ? undefined : maxAttempts,
    retentionMs: store.retentionMs,
    ...ofWorker(store, lock),
    successes: successes.map((success) => {
      const { laneToken, parkedFirst } = success.lock;
      return { ...success, ...success.lock, laneToken, parkedFirst };
    }),
  });
  tellParked(lock, parkedAddresses);
  return ended;
}
