/** Tells operators who listen to the sandbox of each new event, in batches and only while somebody listens. */
import { type Event, eventRef } from '@posthorn/core';
import { createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { createFeedWriter, encodePublished, type Store } from '@posthorn/store';

export interface SandboxFeed extends Service {
  /** Notes an event that was stored. */
  published(event: Event): void;
}

export function createSandboxFeed(store: Store, logger: Logger): SandboxFeed {
  const feed = createFeedWriter(store, 'sandbox_events');
  return {
    ...createRepeating({ name: 'sandbox feed', everyMs: feed.everyMs, run: feed.write, logger }),
    published(event) {
      if (event.environment !== 'sandbox' || !feed.isWatched()) return;
      feed.add(encodePublished({ ref: eventRef(event), eventType: event.type }), true);
    },
  };
}
