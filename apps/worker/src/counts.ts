/** Counts attempts in memory and adds them to the installation's statistics in batches, so that an attempt costs no extra command. */
import { type Attempt, durationBucket, type Verdict } from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { addCounts, type Counts, type Store } from '@posthorn/store';

export interface AttemptCounts {
  /** Counts an attempt that was recorded. */
  attempted(subscriptionId: string, attempt: Attempt, verdict: Verdict, deliveryCreatedAtMs: number): void;
  /** Attempts in flight now. */
  inFlight: number;
  /** Adds the new counts to the statistics. If that fails, throws and keeps them for the next call. */
  flush(): Promise<void>;
}

export function createAttemptCounts(store: Store, clock: Clock): AttemptCounts {
  let counts = noCounts();
  return {
    inFlight: 0,
    attempted(subscriptionId, attempt, verdict, deliveryCreatedAtMs) {
      const ok = verdict.kind === 'succeeded';
      counts[ok ? 'succeeded' : 'failed'] += 1;
      increase(counts.attemptBuckets, durationBucket(attempt.durationMs), 1);
      const endedAtMs = attempt.startedAtMs + attempt.durationMs;
      if (ok) increase(counts.arrivalBuckets, durationBucket(endedAtMs - deliveryCreatedAtMs), 1);
      increaseAddress(counts, subscriptionId, ok ? 1 : 0, ok ? 0 : 1, attempt.durationMs);
    },
    async flush() {
      if (counts.succeeded + counts.failed === 0) return;
      const flushed = counts;
      counts = noCounts();
      try {
        await addCounts(store, flushed, clock.now());
      } catch (error) {
        add(counts, flushed);
        throw error;
      }
    },
  };
}

function noCounts(): Counts {
  return { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses: new Map() };
}

function add(total: Counts, more: Counts): void {
  total.succeeded += more.succeeded;
  total.failed += more.failed;
  for (const name of ['attemptBuckets', 'arrivalBuckets'] as const) {
    for (const [bucket, count] of more[name]) increase(total[name], bucket, count);
  }
  for (const [id, { succeeded, failed, totalMs }] of more.addresses) {
    increaseAddress(total, id, succeeded, failed, totalMs);
  }
}

function increase(counts: Map<number, number>, bucket: number, by: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + by);
}

function increaseAddress({ addresses }: Counts, id: string, succeeded: number, failed: number, totalMs: number): void {
  const before = addresses.get(id) ?? { succeeded: 0, failed: 0, totalMs: 0 };
  addresses.set(id, {
    succeeded: before.succeeded + succeeded,
    failed: before.failed + failed,
    totalMs: before.totalMs + totalMs,
  });
}
