/**
 * The route that finds events by session, reference or user, and shows them with their deliveries: `GET /v1/timeline`.
 */
import { outOfOrder, SEARCH_FIELDS, type SearchTerm } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import { deliveriesOfEvent, type FoundEvent, isSearchOn, type StoredDelivery, searchEvents } from '@posthorn/store';
import type { z } from 'zod';
import type { ConsoleContext } from '../context.ts';
import { instant } from '../instant.ts';
import { nameUnreadable, serializeDelivery } from '../serialize.ts';

/** Deliveries returned with one event, and with all of them. */
const MAX_DELIVERIES_OF_EVENT = 50;
const MAX_DELIVERIES = 1_000;

export function timelineRoute(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  api.tagged('Events').get('/v1/timeline', {
    summary: 'Read the events and deliveries of a session, a reference or a user',
    description:
      'Takes exactly one of `q`, `session_id`, `reference` and `user_id`, and compares whole values. Finds events that were accepted while EVENT_SEARCH was on.',
    query: schemas.timelineQuerySchema,
    responses: { 200: { description: 'The timeline', schema: schemas.timelineSchema } },
    async handle({ query }): Promise<schemas.Timeline> {
      const [{ events, hasMore, unreadable }, isOn] = await Promise.all([
        searchEvents(store, termsOf(query), query.environment, query.limit, clock.now()),
        isSearchOn(store),
      ]);
      const loaded: LoadedEvent[] = [];
      let left = MAX_DELIVERIES;
      for (const stored of events) {
        const limit = Math.min(MAX_DELIVERIES_OF_EVENT, left);
        const { deliveries, hasMore: more, ...found } = await deliveriesOfEvent(store, stored, limit);
        unreadable.push(...found.unreadable);
        left -= deliveries.length;
        loaded.push({ stored, deliveries, more });
      }
      return {
        data: serializeTimeline(loaded, store.retentionMs),
        ...nameUnreadable(context, unreadable),
        has_more: hasMore,
        search: isOn ? 'on' : 'off',
      };
    },
  });
}

/** `q` may stand in any field. */
function termsOf(query: z.output<typeof schemas.timelineQuerySchema>): SearchTerm[] {
  return SEARCH_FIELDS.flatMap((field) => {
    const value = query.q ?? query[field];
    return value === undefined ? [] : [{ field, value }];
  });
}

interface LoadedEvent {
  stored: FoundEvent;
  deliveries: StoredDelivery[];
  more: boolean;
}

function serializeTimeline(loaded: readonly LoadedEvent[], retentionMs: number): schemas.Timeline['data'] {
  const items = loaded.map(({ stored: { ref: id, event, session, acceptedAtMs, trace }, ...rest }) => ({
    ...session,
    ...rest,
    id,
    event,
    environment: event.environment,
    createdAtMs: Date.parse(event.createdAt),
    acceptedAtMs,
    traceId: trace?.traceId ?? null,
  }));
  const late = outOfOrder(items);
  return items.map(({ id: ref, event, deliveries, more, ...item }) => ({
    id: event.id,
    type: event.type,
    environment: event.environment,
    created_at: event.createdAt,
    accepted_at: instant(item.acceptedAtMs),
    session_id: item.sessionId,
    session_status: item.status,
    reference: item.reference,
    user_id: item.userId,
    trace_id: item.traceId,
    out_of_order: late.events.has(ref),
    deliveries: deliveries.map((delivery) => ({
      ...serializeDelivery(delivery, retentionMs),
      out_of_order: late.deliveries.has(delivery.id),
    })),
    more_deliveries: more,
  }));
}
