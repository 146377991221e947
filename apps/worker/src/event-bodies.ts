/** Loads the bodies to send, and caches them: an event that fans out to many addresses is read from Redis once. */
import { type EventRef, eventBody, type TraceContext } from '@posthorn/core';
import { createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { decodeEvent, type EventRecord, loadEvent, type Store } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Memory of the cache. */
const MAX_BYTES = 32 * 1024 * 1024;
const FORGET_EVERY_MS = 60_000;
/** Memory of one position. */
const POSITION_BYTES = 100;

/** What an attempt needs of its event. */
export interface EventToSend {
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
  return {
    /** Returns an event; undefined if it has expired, or its payload was erased. `found`: the event as it is stored, if the caller has read it. */
    async load(event: EventRef, found?: EventRecord): Promise<EventToSend | undefined> {
      const known = kept.get(event);
      if (known) return known;
      const stored = found === undefined ? await loadEvent(store, event) : decodeEvent(event, found);
      if (!stored || stored.erasedAtMs !== undefined) return undefined;
      const positions = new Map(stored.subscriptionIds.map((id, i) => [id, i]));
      const toSend = { body: eventBody(stored.event), positions, trace: stored.trace };
      if (positions.size > 1) {
        kept.set(event, toSend);
        latest = event;
      }
      return toSend;
    },
    /** The event that was cached last: most likely the next job's too. */
    latest: () => latest,
    forgetAll: () => kept.clear(),
  };
}

/** Forgets the bodies once a minute, so that no process keeps one for long after it was erased. An event that still fans out is read again. */
export function createForgetting(bodies: Pick<EventBodies, 'forgetAll'>, logger: Logger): Service {
  const run = async () => bodies.forgetAll();
  return createRepeating({ name: 'event bodies', everyMs: FORGET_EVERY_MS, run, logger });
}
