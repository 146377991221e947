/** Holds each publisher to a share of what Redis can store, so that one of them cannot fill it for all. */
import { AppError } from '@posthorn/core';
import { type Clock, createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { addPublisherUsage, redisCapacity, type Store } from '@posthorn/store';
import { Gauge, type Registry } from 'prom-client';

/** `PUBLISHER_QUOTA`: a share of the memory of Redis, or bytes. */
export type Quota = { share: number } | { bytes: number };

export interface PublisherQuota {
  /** Throws `AppError` (429) if the publisher has used up its quota. */
  check(publisher: string): void;
  /** Counts an accepted event. */
  count(publisher: string, eventBytes: number, deliveries: number): void;
  /** Tells Redis what was counted, once a second. */
  service: Service;
}

/** What Redis needs besides the text of an event: its key, its expiry, entries in indexes (docs/figures.md). */
const EVENT_OVERHEAD_BYTES = 250;
/** A delivery with its job and its entries in indexes, while it is pending. */
const DELIVERY_BYTES = 700;

const TELL_EVERY_MS = 1_000;
/** How often a publisher is read that publishes nothing here: others count it too, and old events expire. */
const READ_EVERY_MS = 60_000;
const RETRY_AFTER_S = 60;

interface Usage {
  /** As Redis had it last, over all processes of ingest. */
  storedBytes: number;
  /** Counted here and not told to Redis yet. */
  pendingBytes: number;
  readAtMs: number;
}

/**
 * Each process counts what it accepts and adds it to Redis once a second, so together they may exceed a quota by what they accept in
 * that second. While Redis cannot be asked, the last known figures count.
 */
export function createPublisherQuota(options: {
  store: Store;
  /** Null for no quota. */
  quota: Quota | null;
  publishers: readonly string[];
  registry: Registry;
  clock: Clock;
  logger: Logger;
}): PublisherQuota {
  const { store, quota, clock, logger } = options;
  const usages = new Map<string, Usage>(
    options.publishers.map((name) => [name, { storedBytes: 0, pendingBytes: 0, readAtMs: Number.NEGATIVE_INFINITY }]),
  );
  let limitBytes = quota && 'bytes' in quota ? quota.bytes : Number.POSITIVE_INFINITY;
  let capacityReadAtMs = Number.NEGATIVE_INFINITY;
  new Gauge({
    name: 'posthorn_publisher_stored_bytes',
    help: 'Estimate of what a publisher has stored in Redis within the retention',
    labelNames: ['publisher'],
    registers: [options.registry],
    collect() {
      for (const [publisher, { storedBytes, pendingBytes }] of usages)
        this.set({ publisher }, storedBytes + pendingBytes);
    },
  });

  const readCapacity = async (nowMs: number) => {
    if (!quota || !('share' in quota) || nowMs - capacityReadAtMs < READ_EVERY_MS) return;
    const capacity = await redisCapacity(store);
    if (capacity === undefined && capacityReadAtMs === Number.NEGATIVE_INFINITY) {
      logger.warn(
        'Redis does not tell how much memory it may use, so PUBLISHER_QUOTA must be set in bytes to take effect.',
      );
    }
    limitBytes = capacity === undefined ? Number.POSITIVE_INFINITY : quota.share * capacity;
    capacityReadAtMs = nowMs;
  };
  const tell = async () => {
    const nowMs = clock.now();
    await readCapacity(nowMs);
    for (const [publisher, usage] of usages) {
      if (usage.pendingBytes === 0 && nowMs - usage.readAtMs < READ_EVERY_MS) continue;
      const told = usage.pendingBytes;
      usage.storedBytes = await addPublisherUsage(store, publisher, told, nowMs);
      usage.pendingBytes -= told;
      usage.readAtMs = nowMs;
    }
  };
  const repeating = createRepeating({ name: 'publisher quota', everyMs: TELL_EVERY_MS, run: tell, logger });
  return {
    check(publisher) {
      const usage = usages.get(publisher);
      const used = usage ? usage.storedBytes + usage.pendingBytes : 0;
      if (used < limitBytes) return;
      throw new AppError(
        'quota_exceeded',
        `${publisher} has about ${megabytes(used)} stored in Redis; its quota is ${megabytes(limitBytes)} (PUBLISHER_QUOTA). ` +
          'Stored events leave after the retention.',
        { retryAfterS: RETRY_AFTER_S },
      );
    },
    count(publisher, eventBytes, deliveries) {
      const usage = usages.get(publisher);
      if (usage) usage.pendingBytes += eventBytes + EVENT_OVERHEAD_BYTES + deliveries * DELIVERY_BYTES;
    },
    service: {
      name: repeating.name,
      async start() {
        await tell();
        await repeating.start();
      },
      async stop(graceMs) {
        await repeating.stop(graceMs);
        await tell();
      },
    },
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
