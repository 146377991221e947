/** For tests and benchmarks: records attempts with any verdict, as a worker does. */
import type { Verdict } from '@posthorn/core';
import { type Recorded, recordFailure, recordSuccess } from './deliveries/attempts.ts';
import type { Store } from './store.ts';

/** Records an attempt. The job stays: nobody has taken it. */
export function recordVerdict(
  store: Store,
  attempted: Omit<Parameters<typeof recordFailure>[1], 'verdict'> & { verdict: Verdict },
): Promise<Recorded> {
  const { delivery, attempt, verdict } = attempted;
  if (verdict.kind !== 'succeeded') return recordFailure(store, { ...attempted, verdict });
  const noJob = { jobId: delivery.id, token: '', nextToken: undefined, lockMs: 1, nowMs: attempt.startedAtMs };
  return recordSuccess(store, { ...attempted, lock: noJob });
}
