/** The operator API's calls on deliveries and events (interface 4). */
import { AppError, DELIVERY_ID, DELIVERY_STATUSES, EVENT_ID, SUBSCRIPTION_ID, utcInstant } from '@posthorn/core';
import { parseFields } from '@posthorn/runtime';
import { BadCursor, listDeliveries, loadDeliveries, loadEvent } from '@posthorn/store';
import { Router } from 'express';
import { z } from 'zod';
import type { ConsoleContext } from './context.ts';
import { pageFields } from './paging.ts';
import { presentDelivery, presentDeliveryWithAttempts, presentEvent } from './present.ts';

/** Deliveries shown with their event; `GET /v1/deliveries?event_id=` pages through more. */
const DELIVERIES_WITH_EVENT = 1_000;

const instantMs = z
  .string()
  .refine((text) => utcInstant(text) !== undefined, 'Expected an ISO 8601 instant with a zone')
  .transform((text) => Date.parse(utcInstant(text)!));

const listSchema = z.strictObject({
  subscription_id: z.string().regex(SUBSCRIPTION_ID, 'Expected the id of a subscription').optional(),
  event_id: z.string().regex(EVENT_ID, 'Expected the id of an event').optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
  from: instantMs.optional(),
  to: instantMs.optional(),
  ...pageFields,
});

export function deliveryRoutes({ store }: ConsoleContext): Router {
  const router = Router();

  router.get('/v1/deliveries', async (request, response) => {
    const query = parseFields(listSchema, request.query, 'The query');
    const filter = {
      subscriptionId: query.subscription_id,
      eventId: query.event_id,
      status: query.status,
      fromMs: query.from,
      toMs: query.to,
    };
    const page = await listDeliveries(store, filter, query.limit, query.cursor);
    const data = page.items.map((delivery) => presentDelivery(delivery, store.retentionMs));
    response.json({ data, next_cursor: page.nextCursor });
  });

  router.get('/v1/deliveries/:id', async (request, response) => {
    const { id } = request.params;
    const [delivery] = DELIVERY_ID.test(id) ? await loadDeliveries(store, [id]) : [];
    if (!delivery) throw new AppError('not_found', 'There is no such delivery.');
    response.json(presentDeliveryWithAttempts(delivery, store.retentionMs));
  });

  router.get('/v1/events/:id', async (request, response) => {
    const { id } = request.params;
    const stored = EVENT_ID.test(id) ? await loadEvent(store, id) : undefined;
    if (!stored) throw new AppError('not_found', 'There is no such event.');
    const page = await listDeliveries(store, { eventId: id }, DELIVERIES_WITH_EVENT);
    const deliveries = page.items.map((delivery) => presentDelivery(delivery, store.retentionMs));
    response.json({ ...presentEvent(stored), deliveries });
  });

  return router;
}

/** A cursor that no list gave is the caller's mistake. */
export function cursorProblem(error: unknown): unknown {
  if (!(error instanceof BadCursor)) return error;
  return new AppError('invalid_fields', 'The query is not valid.', {
    fields: [{ path: 'cursor', message: error.message }],
  });
}
