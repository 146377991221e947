/** The route that shows an event with its deliveries: `GET /v1/events/{id}`. */
import { ENVIRONMENTS, type Environment } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import { findEvents, listDeliveries } from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { missingOrExpired } from '../missing.ts';
import { nameUnreadable, serializeEvent } from '../serialize.ts';

/** Most deliveries returned with an event; `GET /v1/deliveries?event_id=` returns all, paginated. */
const MAX_DELIVERIES_WITH_EVENT = 1_000;

export function eventRoute(api: Api, context: ConsoleContext): void {
  const { store } = context;
  api.tagged('Events').get('/v1/events/{id}', {
    summary: 'Read an event and its deliveries',
    description:
      'An id is unique within an environment. If both have an event with this id and the query does not name an environment, the production event is returned.',
    params: schemas.eventParamsSchema,
    query: schemas.eventQuerySchema,
    responses: { 200: { description: 'The event', schema: schemas.eventSchema } },
    async handle({ params: { id }, query }) {
      const found = await findEvents(store, id);
      const inEnvironment = (environment: Environment) => found.find(({ event }) => event.environment === environment);
      const stored = query.environment
        ? inEnvironment(query.environment)
        : (inEnvironment('production') ?? inEnvironment('sandbox'));
      if (!stored) missingOrExpired('event');
      const { environment } = stored.event;
      const request = { limit: MAX_DELIVERIES_WITH_EVENT, leaveOutUnreadable: true };
      const { items, unreadable } = await listDeliveries(store, { eventId: id, environment }, request);
      const alsoIn = ENVIRONMENTS.filter((other) => other !== environment && inEnvironment(other));
      const serialized = serializeEvent(stored, items, alsoIn, store.retentionMs);
      return { ...serialized, ...nameUnreadable(context, unreadable) };
    },
  });
}
