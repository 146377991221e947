/** Decides in which partitions this process does maintenance: in those whose lease it holds. */
import type { Logger } from '@posthorn/runtime';
import { freeLeases, giveUpLease, holdLease, type Store } from '@posthorn/store';

interface LeaseOptions {
  store: Store;
  logger: Logger;
  partitions: readonly number[];
  /** Names this process in the lease. */
  holder: string;
  /** Names of the duties that have to succeed for the process to keep a lease. */
  duties: readonly string[];
  /** A monotonic clock, in milliseconds. */
  elapsedMs: () => number;
}

export type Lease = ReturnType<typeof createLease>;

/** A lease that is not renewed expires after this, for example because its process died. */
const LEASE_MS = 5_000;
/** A lease younger than this is not renewed. `renew` runs once a second, so it renews each lease every 2 s. */
const RENEW_AFTER_MS = 1_500;
/** A process in which a duty has not succeeded in a partition for this long hands the lease over. */
const MAX_FAILING_MS = 300_000;
/** After handing a lease over, a process leaves it to others for this long: they try to acquire it every second. */
const HAND_OVER_MS = 1_500;

interface Held {
  expiresAtMs: number;
  /** When each duty succeeded last, or when the lease was acquired. */
  succeededAtMs: Map<string, number>;
}

export function createLease({ store, logger, partitions, holder, duties, elapsedMs }: LeaseOptions) {
  const leases = new Map<number, Held>();
  const notBeforeMs = new Map<number, number>();
  const current = (partition: number) => {
    const held = leases.get(partition);
    return held && elapsedMs() < held.expiresAtMs ? held : undefined;
  };
  const release = async (partition: number) => {
    leases.delete(partition);
    await giveUpLease(store, 'maintenance', partition, holder);
  };
  const renew = async (partition: number, nowMs: number) => {
    const held = current(partition);
    const failing = duties.filter((duty) => nowMs - (held?.succeededAtMs.get(duty) ?? nowMs) > MAX_FAILING_MS);
    if (failing.length > 0) {
      notBeforeMs.set(partition, nowMs + HAND_OVER_MS);
      logger.warn({ partition, duties: failing }, 'maintenance.handed_over');
      await release(partition);
    } else if (held && nowMs < held.expiresAtMs - LEASE_MS + RENEW_AFTER_MS) {
      return;
    } else if (await holdLease(store, 'maintenance', partition, holder, LEASE_MS)) {
      const succeededAtMs = held?.succeededAtMs ?? new Map(duties.map((duty) => [duty, nowMs]));
      leases.set(partition, { expiresAtMs: nowMs + LEASE_MS, succeededAtMs });
    } else {
      leases.delete(partition);
    }
  };
  return {
    /** Whether this process holds the lease of a partition, as far as it knows without asking Redis. */
    holds: (partition: number) => current(partition) !== undefined,
    /** Notes that a duty has succeeded in a partition. */
    succeeded: (duty: string, partition: number) => void leases.get(partition)?.succeededAtMs.set(duty, elapsedMs()),
    /** Acquires every lease that is free and renews those held. To be called more often than leases expire. */
    async renew(): Promise<void> {
      // Read before the calls to Redis: a lease must expire in this process no later than in Redis.
      const nowMs = elapsedMs();
      const allowed = partitions.filter((partition) => nowMs >= (notBeforeMs.get(partition) ?? 0));
      const held = allowed.filter((partition) => current(partition));
      const others = allowed.filter((partition) => !held.includes(partition));
      const renewAll = (some: readonly number[]) => Promise.all(some.map((partition) => renew(partition, nowMs)));
      // Concurrently, so that the delays of slow partitions do not add up.
      await Promise.all([renewAll(held), freeLeases(store, 'maintenance', others, holder).then(renewAll)]);
    },
    /** Releases every lease held. */
    async release(): Promise<void> {
      await Promise.all([...leases.keys()].map(release));
    },
  };
}
