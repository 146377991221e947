/**
 * Counts attempts in memory and adds them to the installation's statistics in batches, so that an attempt costs no
 * extra command.
 */
import {
  type Attempt,
  addFailure,
  addSuccess,
  durationBucket,
  knownOrNew,
  newAttemptRun,
  partitionOf,
} from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { type AddressCounts, addCounts, type Counts, LONG_MS, type Store } from '@posthorn/store';

export type AttemptCounts = ReturnType<typeof createAttemptCounts>;

/** The address that an attempt went to, and when its delivery was made. */
interface AttemptedAddress {
  subscriptionId: string;
  url: string;
  createdAtMs: number;
}

export function createAttemptCounts(store: Store, clock: Clock) {
  const parts = new Map<number, PartCounts>();
  const partOf = (partition: number) => knownOrNew(parts, partition, newPart);
  return {
    /** Attempts in flight now. */
    inFlight: 0,
    /** Counts an attempt that was recorded. `label` names the error, if there was one. */
    attempted(
      deliveryId: string,
      { subscriptionId, url, createdAtMs }: AttemptedAddress,
      attempt: Attempt,
      label: string,
    ): void {
      const { number: attemptNumber, startedAtMs, durationMs } = attempt;
      const endedAtMs = startedAtMs + durationMs;
      const outcome = attempt.error === null ? 'succeeded' : 'failed';
      const totals = partOf(0).counts;
      totals[outcome] += 1;
      increase(totals.attemptBuckets, durationMs);
      if (outcome === 'succeeded') increase(totals.arrivalBuckets, endedAtMs - createdAtMs);
      const address = addressCounts(partOf(partitionOf(subscriptionId, store.partitions)).counts, subscriptionId, url);
      address.totalMs += durationMs;
      if (durationMs >= LONG_MS) increase(address.longBuckets, durationMs);
      if (outcome === 'succeeded') addSuccess(address, endedAtMs);
      else addFailure(address, { label, sinceMs: endedAtMs, deliveryId, attemptNumber });
    },
    /**
     * Adds the new counts to the statistics in a partition. Throws if some could not be added, and keeps those for the
     * next call for the partition, which must not come before this one has ended.
     */
    async flush(partition: number): Promise<void> {
      const part = partOf(partition);
      const save = async () => {
        const { succeeded, failed, addresses } = part.unsaved;
        if (succeeded + failed + addresses.size > 0) await addCounts(store, part.unsaved, clock.now());
      };
      await save();
      part.unsaved = part.counts;
      part.counts = noCounts();
      await save();
    },
  };
}

/** The counts that are stored in one partition. The totals of all are in the first one. */
interface PartCounts {
  counts: Counts;
  /** Those that the last flush took and Redis has not added yet. */
  unsaved: Counts;
}

const newPart = (): PartCounts => ({ counts: noCounts(), unsaved: noCounts() });

/** The counts of an address. Those of an old url are kept apart: they say nothing about the health of the new one. */
function addressCounts({ addresses }: Counts, subscriptionId: string, url: string): AddressCounts {
  const known = addresses.get(subscriptionId);
  if (known?.url === url) return known;
  const fresh = { ...newAttemptRun(), url, totalMs: 0, longBuckets: new Map(), earlier: known };
  addresses.set(subscriptionId, fresh);
  return fresh;
}

function noCounts(): Counts {
  return { succeeded: 0, failed: 0, attemptBuckets: new Map(), arrivalBuckets: new Map(), addresses: new Map() };
}

function increase(counts: Map<number, number>, durationMs: number): void {
  const bucket = durationBucket(durationMs);
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}
