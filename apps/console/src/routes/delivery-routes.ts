/** Routes for deliveries and their replay (interface 4). */
import { AppError } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import {
  listDeliveries,
  loadResponses,
  loadSubscriptions,
  type ReplayRefusal,
  replayDelivery,
  replaysOf,
  type Store,
} from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { deliveryFilterOf, findDelivery } from '../find-delivery.ts';
import { notActive } from '../not-active.ts';
import { requestOf } from '../request-of.ts';
import { serializeDelivery, serializeDeliveryWithAttempts, serializePage } from '../serialize.ts';
import { actionOn, traced } from '../traces.ts';
import { tryNowRoutes } from './try-now-routes.ts';

const refusals: Record<ReplayRefusal, string> = {
  gone: 'This delivery no longer exists.',
  not_failed: 'Only a failed delivery can be replayed.',
  too_late: 'It failed too long ago to be replayed (RETENTION).',
  erased: 'Its payload has been erased.',
  not_active: `${notActive('Its address')}.`,
};
const SUBSCRIPTION_DELETED = 'Its subscription was deleted.';

export function deliveryRoutes(api: Api, context: ConsoleContext): void {
  readRoutes(api, context);
  replayRoute(api, context);
  tryNowRoutes(api, context);
}

async function isDeleted(store: Store, subscriptionId: string): Promise<boolean> {
  const [subscription] = await loadSubscriptions(store, [subscriptionId]);
  return subscription === undefined;
}

function readRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  const deliveries = api.tagged('Deliveries');

  deliveries.get('/v1/deliveries', {
    summary: 'List deliveries, newest first',
    description:
      'Failed deliveries are kept for `RETENTION` (30 days by default) and a day, succeeded ones for `RETENTION_SUCCEEDED` (7 days). Filters can be combined. `from` and `to` limit the time of creation, inclusive. A page may have fewer items than its limit.',
    query: schemas.deliveriesQuerySchema,
    responses: { 200: { description: 'A page of deliveries', schema: schemas.listOf(schemas.deliverySchema) } },
    async handle({ query: { limit, cursor, ...query } }) {
      const filter = { ...deliveryFilterOf(query), status: query.status, failureReason: query.error };
      const page = await listDeliveries(store, filter, { limit, cursor, leaveOutUnreadable: true }, clock.now());
      return await serializePage(context, page, (delivery) => serializeDelivery(delivery, store.retentionMs));
    },
  });

  deliveries.get('/v1/deliveries/{id}', {
    summary: 'Read one, with its attempts',
    params: schemas.deliveryParamsSchema,
    responses: { 200: { description: 'The delivery', schema: schemas.deliveryWithAttemptsSchema } },
    async handle({ params: { id } }) {
      const delivery = await findDelivery(store, id);
      const [replays, responses, deleted] = await Promise.all([
        replaysOf(store, delivery.event, delivery.subscriptionId),
        loadResponses(store, id),
        isDeleted(store, delivery.subscriptionId),
      ]);
      const shown = serializeDeliveryWithAttempts(delivery, responses, replays, store.retentionMs);
      return deleted ? { ...shown, replayable_until: null } : shown;
    },
  });

  deliveries.get('/v1/deliveries/{id}/request', {
    summary: 'Read the request that an attempt sends',
    description:
      'The request as of the start of an attempt, or as of now. It uses the current `url` and the secrets valid at that time if they are still known.',
    params: schemas.deliveryParamsSchema,
    query: schemas.requestQuerySchema,
    responses: { 200: { description: 'The request', schema: schemas.requestSchema } },
    problems: ['conflict'],
    async handle({ params: { id }, query: { attempt } }) {
      return await requestOf(context, await findDelivery(store, id), attempt);
    },
  });
}

function replayRoute(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  api.tagged('Deliveries').post('/v1/deliveries/{id}/replay', {
    summary: 'Replay a failed delivery',
    description: 'Makes a new delivery of the same event with fresh attempts.',
    params: schemas.deliveryParamsSchema,
    responses: { 201: { description: 'The new delivery', schema: schemas.deliverySchema } },
    problems: ['conflict'],
    async handle({ params: { id }, caller, request }) {
      const failed = await findDelivery(store, id);
      const action = await actionOn(context, failed, request, 'replay', true);
      const deliveryId = await traced(context, action, async (_trace, fields) => {
        const made = await replayDelivery(store, failed, clock.now(), caller);
        if ('refused' in made) {
          const deleted = made.refused === 'not_active' && (await isDeleted(store, failed.subscriptionId));
          throw new AppError('conflict', deleted ? SUBSCRIPTION_DELETED : refusals[made.refused]);
        }
        const line = { delivery_id: made.deliveryId, replay_of: id, operator: caller, ...fields };
        logger.info(line, 'delivery.replayed');
        return made.deliveryId;
      });
      return serializeDelivery(await findDelivery(store, deliveryId), store.retentionMs);
    },
  });
}
