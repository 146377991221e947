/** Loads the bodies to send, and caches them: an event that fans out to many addresses is read from Redis once. */
import { type EventRef, eventBody, type TraceContext } from '@posthorn/core';
import { createRepeating, type Logger, type Service } from '@posthorn/runtime';
import {
  decodeEvent,
  type EventRecord,
  loadEvent,
  prefixOfEvent,
  type Store,
  type StoredEvent,
  withCircuitBreaker,
} from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Limit on the memory of the cache, in bytes. */
const MAX_BYTES = 32 * 1024 * 1024;
const FORGET_EVERY_MS = 60_000;
/** Estimated memory of one entry of `positions`. */
const POSITION_BYTES = 100;

/** What an attempt needs of its event. */
export interface EventToSend {
  id: string;
  body: string;
  /** The subscriptions that the event was matched to, each with its position among them. */
  positions: ReadonlyMap<string, number>;
  /** The trace that its attempts continue. */
  trace?: TraceContext | undefined;
}

/** Why there is nothing to send of an event: it is gone, or its payload is. */
export type NothingToSend = 'expired' | 'erased';

export type EventBodies = ReturnType<typeof createEventBodies>;

export function createEventBodies(store: Store) {
  const kept = new LRUCache<string, EventToSend>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body, positions }) => 2 * body.length + POSITION_BYTES * positions.size + 200,
  });
  /** Reads in progress: all jobs of a burst ask for their event before the first reply. */
  const reads = new Map<EventRef, Promise<EventToSend | NothingToSend>>();
  let latest: EventRef | undefined;
  const keep = (event: EventRef, stored: StoredEvent | undefined): EventToSend | NothingToSend => {
    if (!stored) return 'expired';
    if (stored.erasedAtMs !== undefined) return 'erased';
    const positions = new Map<string, number>();
    for (const subscriptionId of stored.subscriptionIds) positions.set(subscriptionId, positions.size);
    const toSend = { id: stored.event.id, body: eventBody(stored.event), positions, trace: stored.trace };
    if (positions.size > 1) {
      kept.set(event, toSend);
      latest = event;
    }
    return toSend;
  };
  const read = (event: EventRef) => {
    const reading = withCircuitBreaker(store, prefixOfEvent(store, event), () => loadEvent(store, event))
      .then((stored) => keep(event, stored))
      .finally(() => reads.delete(event));
    reads.set(event, reading);
    return reading;
  };
  return {
    /**
     * Returns an event, or why there is nothing to send. `found`: the stored event, if the caller has read it already.
     * Returns a promise only if the event has to be read from Redis. If the master of a Cluster that has the event does
     * not reply, the promise soon rejects with `StorageUnavailable`. Also rejects, and never throws, if the event is
     * not as it must be: the caller may have another promise that somebody must handle.
     */
    load(event: EventRef, found?: EventRecord): EventToSend | NothingToSend | Promise<EventToSend | NothingToSend> {
      const known = kept.get(event);
      if (known) return known;
      if (found === undefined) return reads.get(event) ?? read(event);
      try {
        return keep(event, decodeEvent(event, found));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    /** The event that was cached last, if it still is: most likely the next job's too. */
    latest: () => latest,
    forgetAll() {
      kept.clear();
      latest = undefined;
    },
  };
}

/**
 * Forgets the bodies once a minute, so that no process keeps one for long after it was erased. An event that still fans
 * out is read again.
 */
export function createForgetting(bodies: Pick<EventBodies, 'forgetAll'>, logger: Logger): Service {
  const run = async () => bodies.forgetAll();
  return createRepeating({ name: 'event bodies', everyMs: FORGET_EVERY_MS, run, logger });
}
