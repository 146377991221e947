/** For tests and benchmarks: records attempts with any verdict, as a worker does. */
import type { Attempt, CameBack, Verdict } from '@posthorn/core';
import { type AttemptedDelivery, type Recorded, recordFailure, recordSuccess } from './attempts.ts';
import type { Store } from './store.ts';

/** Records an attempt. The job stays: nobody has taken it. */
export function recordVerdict(
  store: Store,
  delivery: AttemptedDelivery,
  attempt: Attempt,
  verdict: Verdict,
  limits: { pauseAfter: number; maxAttempts: number },
  cameBack?: () => CameBack,
): Promise<Recorded> {
  if (verdict.kind !== 'succeeded') return recordFailure(store, delivery, attempt, verdict, limits, cameBack);
  const noJob = { jobId: delivery.id, token: '', nextToken: undefined, lockMs: 1, nowMs: attempt.startedAtMs };
  return recordSuccess(store, delivery, attempt, limits, cameBack, noJob);
}
