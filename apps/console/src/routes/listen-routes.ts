/**
 * New events of the sandbox, as server-sent events: `posthorn listen` forwards them to a receiver under development.
 */
import { eventBody } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { type ListenedEvent, listenedEventSchema, listenQuerySchema } from '@posthorn/operator-api';
import { loadEvent, type PublishedEntry, type Store } from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { sendEventStream } from '../event-stream.ts';
import type { FeedItem } from '../feed-hub.ts';

/** An event may have some hundred kilobytes. */
const MAX_ITEMS = 10;

export function listenRoutes(api: Api, context: ConsoleContext): void {
  api.tagged('Events').get('/v1/listen', {
    summary: 'Listen to the sandbox',
    description:
      'Server-sent events: `event` with a ListenedEvent for each new event of the sandbox, with or without subscriptions; `gap` and `heartbeat` as in GET /v1/tail. Events of production are never sent. About 1,000 events are kept for Last-Event-ID.',
    query: listenQuerySchema,
    responses: {
      200: { description: 'A stream of events', schema: listenedEventSchema, type: 'text/event-stream' },
    },
    problems: ['stopping'],
    async handle({ query: { event_type: wanted, ...unused }, ...call }) {
      unused satisfies Record<string, never>;
      await sendEventStream(context, context.published, 'event', {
        ...call,
        maxItems: MAX_ITEMS,
        select: async (items) => {
          const chosen = items.filter(({ entry }) => wanted === undefined || entry?.eventType === wanted);
          return (await Promise.all(chosen.map((item) => load(context.store, item)))).flat();
        },
      });
    },
  });
}

/** Resolves with the event of an item, or with nothing if it was erased or no longer exists. */
async function load(store: Store, { id, entry }: FeedItem<PublishedEntry>): Promise<{ id: string; json: string }[]> {
  const stored = entry && (await loadEvent(store, entry.ref));
  if (stored?.event.environment !== 'sandbox' || stored.erasedAtMs !== undefined) return [];
  const { event } = stored;
  const listened: ListenedEvent = {
    id: event.id,
    type: event.type,
    created_at: event.createdAt,
    body: eventBody(event),
  };
  return [{ id, json: JSON.stringify(listened) }];
}
