/** Loads the bodies to send, and caches them: an event that fans out to many addresses is read from Redis once. */
import { type EventRef, eventBody } from '@posthorn/core';
import { loadEvent, type Store } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Memory of the cache. */
const MAX_BYTES = 32 * 1024 * 1024;

export type EventBodies = ReturnType<typeof createEventBodies>;

export function createEventBodies(store: Store) {
  const kept = new LRUCache<string, string>({ maxSize: MAX_BYTES, sizeCalculation: (body) => 2 * body.length + 200 });
  return {
    /** Returns the text of an event's body; undefined if the event has expired. */
    async load(event: EventRef): Promise<string | undefined> {
      const known = kept.get(event);
      if (known) return known;
      const stored = await loadEvent(store, event);
      if (!stored) return undefined;
      const body = eventBody(stored.event);
      if (stored.subscriptionIds.length > 1) kept.set(event, body);
      return body;
    },
  };
}
