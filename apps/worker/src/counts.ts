/** Counts attempts in memory and adds them to the installation's statistics every so often, so that an attempt costs Redis nothing more. */
import { type Attempt, durationBucket, type Verdict } from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { addCounts, type Counts, type Store } from '@posthorn/store';

/** How often a worker tells what it has counted, and that it is alive. */
export const TELL_EVERY_MS = 2_000;

export interface AttemptCounts {
  /** Counts an attempt that was recorded. */
  attempted(subscriptionId: string, attempt: Attempt, verdict: Verdict, deliveryCreatedAtMs: number): void;
  /** Attempts in flight now. */
  inFlight: number;
  /** Adds what was counted since the last time to the statistics. What can't be added now is added the next time. */
  tell(): Promise<void>;
}

export function createAttemptCounts(store: Store, clock: Clock): AttemptCounts {
  let counts = nothing();
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
    async tell() {
      if (counts.succeeded + counts.failed === 0) return;
      const told = counts;
      counts = nothing();
      try {
        await addCounts(store, told, clock.now());
      } catch (error) {
        add(counts, told);
        throw error;
      }
    },
  };
}

function nothing(): Counts {
  return { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses: new Map() };
}

function add(to: Counts, more: Counts): void {
  to.succeeded += more.succeeded;
  to.failed += more.failed;
  for (const name of ['attemptBuckets', 'arrivalBuckets'] as const) {
    for (const [bucket, count] of more[name]) increase(to[name], bucket, count);
  }
  for (const [id, of] of more.addresses) increaseAddress(to, id, of.succeeded, of.failed, of.totalMs);
}

function increase(counts: Map<number, number>, bucket: number, by: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + by);
}

function increaseAddress({ addresses }: Counts, id: string, succeeded: number, failed: number, totalMs: number): void {
  const of = addresses.get(id);
  if (!of) {
    addresses.set(id, { succeeded, failed, totalMs });
    return;
  }
  of.succeeded += succeeded;
  of.failed += failed;
  of.totalMs += totalMs;
}
