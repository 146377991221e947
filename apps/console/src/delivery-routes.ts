/** The operator API's calls on deliveries, their replay, and events (interface 4). */
import { AppError, ENVIRONMENTS, type Environment } from '@posthorn/core';
import { replay } from '@posthorn/dispatch';
import type { Api } from '@posthorn/http';
import {
  deliveriesQuerySchema,
  deliveryParamsSchema,
  deliverySchema,
  deliveryWithAttemptsSchema,
  eventParamsSchema,
  eventQuerySchema,
  eventSchema,
  pageOf,
  requestQuerySchema,
  requestSchema,
} from '@posthorn/operator-api';
import {
  findEvents,
  listDeliveries,
  loadDeliveries,
  type ReplayRefusal,
  replaysOf,
  type StoredDelivery,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { requestOf } from './request-of.ts';
import { serializeDelivery, serializeDeliveryWithAttempts, serializeEvent, serializePage } from './serialize.ts';

const tag = 'Deliveries';
/** Deliveries shown with their event; `GET /v1/deliveries?event_id=` pages through more. */
const DELIVERIES_WITH_EVENT = 1_000;

const refusals: Record<ReplayRefusal, string> = {
  gone: 'This delivery is not kept any more.',
  not_failed: 'Only a failed delivery can be replayed.',
  too_late: 'It failed too long ago to be replayed.',
  not_active: 'Its address is not active: resume or validate it first.',
};

export function deliveryRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  const load = async (id: string): Promise<StoredDelivery> => {
    const [delivery] = await loadDeliveries(store, [id]);
    if (!delivery) throw new AppError('not_found', 'There is no such delivery.');
    return delivery;
  };

  api.route(
    {
      method: 'get',
      path: '/v1/deliveries',
      summary: 'List deliveries, newest first',
      description: 'Filters may be combined; times are those of creation, both ends included. A page may be short.',
      tag,
      query: deliveriesQuerySchema,
      responses: { 200: { description: 'A page of deliveries', schema: pageOf(deliverySchema) } },
    },
    async ({ query }) => {
      const filter = {
        subscriptionId: query.subscription_id,
        eventId: query.event_id,
        environment: query.environment,
        eventType: query.event_type,
        status: query.status,
        fromMs: query.from,
        toMs: query.to,
      };
      const page = await listDeliveries(store, filter, query.limit, query.cursor);
      return { status: 200, body: await serializePage(page, (item) => serializeDelivery(item, store.retentionMs)) };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/deliveries/{id}',
      summary: 'Read one, with its attempts',
      tag,
      params: deliveryParamsSchema,
      responses: { 200: { description: 'The delivery', schema: deliveryWithAttemptsSchema } },
    },
    async ({ params: { id } }) => {
      const delivery = await load(id);
      const replays = await replaysOf(store, delivery.event, delivery.subscriptionId);
      return { status: 200, body: serializeDeliveryWithAttempts(delivery, replays, store.retentionMs) };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/deliveries/{id}/request',
      summary: 'Read the request that an attempt sends',
      description:
        'As it was at the start of an attempt, or as it would be now; with the present url and the secrets that held then, as far as they are known.',
      tag,
      params: deliveryParamsSchema,
      query: requestQuerySchema,
      responses: { 200: { description: 'The request', schema: requestSchema } },
    },
    async ({ params: { id }, query }) => {
      return { status: 200, body: await requestOf(context, await load(id), query.attempt) };
    },
  );

  api.route(
    {
      method: 'post',
      path: '/v1/deliveries/{id}/replay',
      summary: 'Replay a failed delivery',
      description: 'Makes a new delivery of the same event with fresh attempts.',
      tag,
      params: deliveryParamsSchema,
      responses: { 201: { description: 'The new delivery', schema: deliverySchema } },
      problems: [409],
    },
    async ({ params: { id }, caller }) => {
      const failed = await load(id);
      const made = await replay(context, failed, caller, clock.now());
      if ('refused' in made) throw new AppError('conflict', refusals[made.refused]);
      logger.info({ delivery_id: made.deliveryId, replay_of: id, operator: caller }, 'delivery.replayed');
      return { status: 201, body: serializeDelivery(await load(made.deliveryId), store.retentionMs) };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/events/{id}',
      summary: 'Read an event and what became of it',
      description:
        'An id is unique within an environment. If both have an event with this id and none is named, the production event is returned.',
      tag: 'Events',
      params: eventParamsSchema,
      query: eventQuerySchema,
      responses: { 200: { description: 'The event', schema: eventSchema } },
    },
    async ({ params: { id }, query }) => {
      const found = await findEvents(store, id);
      const inEnvironment = (environment: Environment) => found.find(({ event }) => event.environment === environment);
      const stored = query.environment
        ? inEnvironment(query.environment)
        : (inEnvironment('production') ?? inEnvironment('sandbox'));
      if (!stored) throw new AppError('not_found', 'There is no such event.');
      const { environment } = stored.event;
      const filter = { eventId: id, environment };
      const page = await listDeliveries(store, filter, DELIVERIES_WITH_EVENT);
      const alsoIn = ENVIRONMENTS.filter((other) => other !== environment && inEnvironment(other));
      return { status: 200, body: serializeEvent(stored, page.items, alsoIn, store.retentionMs) };
    },
  );
}
