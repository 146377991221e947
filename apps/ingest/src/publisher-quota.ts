/** Limits what each publisher may store in Redis, so that none can fill it for all. */
import { AppError, type Event, throwRejections } from '@posthorn/core';
import { type Clock, createRepeating, type Logger } from '@posthorn/runtime';
import { addPublisherUsage, readServerState, type Store } from '@posthorn/store';
import { Gauge, type Registry } from 'prom-client';

/** `PUBLISHER_QUOTA`: a share of the memory of Redis, or bytes. */
export type Quota = { share: number } | { bytes: number };

export type PublisherQuota = ReturnType<typeof createPublisherQuota>;

/** Memory that an event takes besides its text: key, expiry, index entries (docs/figures.md). */
const EVENT_OVERHEAD_BYTES = 250;
/** Memory of the entries of an event in the search index, at most. */
const SEARCH_BYTES = 100;
/** Memory of a pending delivery with its job and index entries. */
const DELIVERY_BYTES = 700;
/** An id of more characters takes more: in the event's key and its entries in the search index. */
const SHORT_ID = 40;
const ID_COPIES = 4;
/** With an id of more characters Redis keeps the delivery as a table (decision 51). */
const COMPACT_ID = 60;
const TABLE_BYTES = 500;

const SAVE_EVERY_MS = 1_000;
/** How often the usage of an idle publisher is read again: others count it too, and old events expire. */
const READ_EVERY_MS = 60_000;
const RETRY_AFTER_S = 60;

interface Usage {
  /** As last read from Redis: the total of all ingest processes. */
  storedBytes: number;
  /** Counted in this process and not yet added to Redis. */
  pendingBytes: number;
  readAtMs: number;
}

/**
 * Each process counts what it stores and adds it to Redis once a second, so together they may exceed a quota by what
 * they store in that second. While Redis is unavailable, the last known figures apply.
 */
export function createPublisherQuota(options: {
  store: Store;
  /** Null for no quota. */
  quota: Quota | null;
  publishers: readonly string[];
  registry: Registry;
  clock: Clock;
  logger: Logger;
}) {
  const { store, quota, clock, logger } = options;
  const usages = new Map<string, Usage>(
    options.publishers.map((name) => [name, { storedBytes: 0, pendingBytes: 0, readAtMs: Number.NEGATIVE_INFINITY }]),
  );
  let limitBytes = quota && 'bytes' in quota ? quota.bytes : Number.POSITIVE_INFINITY;
  let capacityReadAtMs = Number.NEGATIVE_INFINITY;
  new Gauge({
    name: 'posthorn_publisher_stored_bytes',
    help: 'Estimate of what a publisher has stored in Redis within the retention. Up to a minute old in a process that stores nothing for it: take the maximum',
    labelNames: ['publisher'],
    registers: [options.registry],
    collect() {
      for (const [publisher, { storedBytes, pendingBytes }] of usages)
        this.set({ publisher }, storedBytes + pendingBytes);
    },
  });

  const readCapacity = async (nowMs: number) => {
    if (!quota || !('share' in quota) || isRecent(capacityReadAtMs, nowMs)) return;
    const { capacityBytes } = await readServerState(store, clock.now);
    if (capacityBytes === null && capacityReadAtMs === Number.NEGATIVE_INFINITY) {
      logger.warn(
        'Redis does not report its memory limit, so PUBLISHER_QUOTA takes effect only if it is set in bytes.',
      );
    }
    limitBytes = capacityBytes === null ? Number.POSITIVE_INFINITY : quota.share * capacityBytes;
    capacityReadAtMs = nowMs;
  };
  const saveUsage = async (publisher: string, usage: Usage, nowMs: number) => {
    if (usage.pendingBytes === 0 && isRecent(usage.readAtMs, nowMs)) return;
    const savedBytes = usage.pendingBytes;
    usage.storedBytes = await addPublisherUsage(store, publisher, savedBytes, nowMs);
    usage.pendingBytes -= savedBytes;
    usage.readAtMs = nowMs;
  };
  /** All of it at once: a master of a Cluster that is away stops only what is on it. */
  const save = async () => {
    const nowMs = clock.now();
    const saves = Array.from(usages, ([publisher, usage]) => saveUsage(publisher, usage, nowMs));
    throwRejections(await Promise.allSettled([readCapacity(nowMs), ...saves]));
  };
  return {
    /** Throws `AppError` (429) if the publisher has used up its quota. */
    check(publisher: string): void {
      const usage = usages.get(publisher);
      const used = usage ? usage.storedBytes + usage.pendingBytes : 0;
      if (used < limitBytes) return;
      throw new AppError(
        'quota_exceeded',
        `${publisher} has about ${megabytes(used)} stored in Redis; its quota is ${megabytes(limitBytes)} (PUBLISHER_QUOTA). ` +
          'Space is freed as stored events expire.',
        { retryAfterS: RETRY_AFTER_S },
      );
    },
    /** Counts an event that was stored, with its deliveries. */
    count(publisher: string, event: Pick<Event, 'id' | 'dataJson'>, deliveries: number): void {
      const usage = usages.get(publisher);
      if (usage) usage.pendingBytes += bytesOf(event, deliveries);
    },
    /** Adds the counts to Redis, once a second. */
    service: createRepeating({
      name: 'publisher quota',
      everyMs: SAVE_EVERY_MS,
      run: save,
      onStart: save,
      onStop: save,
      logger,
    }),
  };
}

/** Whether a time was less than a minute ago. One that is ahead was read before the clock was set back. */
function isRecent(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) < READ_EVERY_MS;
}

function bytesOf({ id, dataJson }: Pick<Event, 'id' | 'dataJson'>, deliveries: number): number {
  const event = Buffer.byteLength(dataJson) + EVENT_OVERHEAD_BYTES + SEARCH_BYTES;
  const copies = ID_COPIES * Math.max(0, id.length - SHORT_ID);
  const delivery = DELIVERY_BYTES + (id.length > COMPACT_ID ? TABLE_BYTES + id.length : 0);
  return event + copies + deliveries * delivery;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
