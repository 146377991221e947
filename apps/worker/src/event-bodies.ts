/** The bodies to send, kept for a while: an event that fans out to many addresses is read from Redis once. */
import { eventBody } from '@posthorn/core';
import { loadEvent, type Store } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Memory for bodies in one process. */
const MAX_BYTES = 32 * 1024 * 1024;

export interface EventBodies {
  /** The text of an event's body, or undefined where the event is gone. */
  load(eventId: string): Promise<string | undefined>;
}

export function createEventBodies(store: Store): EventBodies {
  const kept = new LRUCache<string, string>({ maxSize: MAX_BYTES, sizeCalculation: (body) => 2 * body.length + 200 });
  return {
    async load(eventId) {
      const known = kept.get(eventId);
      if (known) return known;
      const stored = await loadEvent(store, eventId);
      if (!stored) return undefined;
      const body = eventBody(stored.event);
      if (stored.subscriptionIds.length > 1) kept.set(eventId, body);
      return body;
    },
  };
}
