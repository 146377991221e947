/** Caches the bodies to send: an event that fans out to many addresses is read from Redis once. */
import { type EventRef, eventBody } from '@posthorn/core';
import { loadEvent, type Store } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Memory of the cache. */
const MAX_BYTES = 32 * 1024 * 1024;

export interface EventBodies {
  /** Returns the text of an event's body; undefined if the event has expired. */
  load(event: EventRef): Promise<string | undefined>;
}

export function createEventBodies(store: Store): EventBodies {
  const kept = new LRUCache<string, string>({ maxSize: MAX_BYTES, sizeCalculation: (body) => 2 * body.length + 200 });
  return {
    async load(event) {
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
