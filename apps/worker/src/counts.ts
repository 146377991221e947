/** Counts attempts in memory and adds them to the installation's statistics in batches, so that an attempt costs no extra command. */
import { type Attempt, durationBucket, type Verdict } from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { addCounts, type Counts, type Store } from '@posthorn/store';

export type AttemptCounts = ReturnType<typeof createAttemptCounts>;

export function createAttemptCounts(store: Store, clock: Clock) {
  let counts = noCounts();
  /** The counts of a flush that failed. */
  let unsaved = noCounts();
  const save = async () => {
    if (unsaved.succeeded + unsaved.failed > 0) await addCounts(store, unsaved, clock.now());
    unsaved = noCounts();
  };
  return {
    /** Attempts in flight now. */
    inFlight: 0,
    /** Counts an attempt that was recorded. */
    attempted(subscriptionId: string, attempt: Attempt, verdict: Verdict, deliveryCreatedAtMs: number): void {
      const { startedAtMs, durationMs } = attempt;
      const outcome = verdict.kind === 'succeeded' ? 'succeeded' : 'failed';
      counts[outcome] += 1;
      increase(counts.attemptBuckets, durationMs);
      if (outcome === 'succeeded') increase(counts.arrivalBuckets, startedAtMs + durationMs - deliveryCreatedAtMs);
      const address = counts.addresses.get(subscriptionId) ?? { succeeded: 0, failed: 0, totalMs: 0 };
      address[outcome] += 1;
      address.totalMs += durationMs;
      counts.addresses.set(subscriptionId, address);
    },
    /** Adds the new counts to the statistics. If that fails, throws and keeps them for the next call. */
    async flush(): Promise<void> {
      await save();
      unsaved = counts;
      counts = noCounts();
      await save();
    },
  };
}

function noCounts(): Counts {
  return { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses: new Map() };
}

function increase(counts: Map<number, number>, durationMs: number): void {
  const bucket = durationBucket(durationMs);
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}
