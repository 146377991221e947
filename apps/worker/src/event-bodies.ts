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

/** Memory of the cache. */
const MAX_BYTES = 32 * 1024 * 1024;
const FORGET_EVERY_MS = 60_000;
/** Memory of one position. */
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

export type EventBodies = ReturnType<typeof createEventBodies>;

export function createEventBodies(store: Store) {
  const kept = new LRUCache<string, EventToSend>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body, positions }) => 2 * body.length + POSITION_BYTES * positions.size + 200,
  });
  let latest: EventRef | undefined;
  const keep = (event: EventRef, stored: StoredEvent | undefined): EventToSend | undefined => {
    if (!stored || stored.erasedAtMs !== undefined) return undefined;
    const positions = new Map<string, number>();
    for (const subscriptionId of stored.subscriptionIds) positions.set(subscriptionId, positions.size);
    const toSend = { id: stored.event.id, body: eventBody(stored.event), positions, trace: stored.trace };
    if (positions.size > 1) {
      kept.set(event, toSend);
      latest = event;
    }
    return toSend;
  };
  return {
    /**
     * Returns an event; undefined if it has expired, or its payload was erased. `found`: the event as it is stored, if
     * the caller has read it. Returns a promise only if it has to be read; it rejects with `StorageUnavailable` soon if the
     * master of a Cluster that has the event does not reply.
     */
    load(event: EventRef, found?: EventRecord): EventToSend | undefined | Promise<EventToSend | undefined> {
      const known = kept.get(event);
      if (known) return known;
      if (found !== undefined) return keep(event, decodeEvent(event, found));
      const read = () => loadEvent(store, event);
      return withCircuitBreaker(store, prefixOfEvent(store, event), read).then((stored) => keep(event, stored));
    },
    /** The event that was cached last: most likely the next job's too. */
    latest: () => latest,
    forgetAll: () => kept.clear(),
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
