/** Loads the bodies to send, and caches them: an event that fans out to many addresses is read from Redis once. */
import { type EventRef, eventBody } from '@posthorn/core';
import { loadEvent, type Store } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Memory of the cache. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Memory of one position. */
const POSITION_BYTES = 100;

/** What an attempt needs of its event. */
export interface EventToSend {
  body: string;
  /** The subscriptions that the event was matched to, each with its position among them. */
  positions: ReadonlyMap<string, number>;
}

export type EventBodies = ReturnType<typeof createEventBodies>;

export function createEventBodies(store: Store) {
  const kept = new LRUCache<string, EventToSend>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ body, positions }) => 2 * body.length + POSITION_BYTES * positions.size + 200,
  });
  return {
    /** Returns an event; undefined if it has expired. */
    async load(event: EventRef): Promise<EventToSend | undefined> {
      const known = kept.get(event);
      if (known) return known;
      const stored = await loadEvent(store, event);
      if (!stored) return undefined;
      const positions = new Map(stored.subscriptionIds.map((id, i) => [id, i]));
      const toSend = { body: eventBody(stored.event), positions };
      if (positions.size > 1) kept.set(event, toSend);
      return toSend;
    },
  };
}
