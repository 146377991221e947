/** Routes that make the next attempts of waiting deliveries before their time (decision 36). */
import { AppError } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import {
  appendAudit,
  listDeliveries,
  loadSubscriptions,
  type Store,
  type TryNowRefusal,
  tryNow,
} from '@posthorn/store';
import { allParts } from '../all-parts.ts';
import type { ConsoleContext } from '../context.ts';
import { deliveryFilterOf, findDelivery } from '../find-delivery.ts';
import { notActive } from '../not-active.ts';
import { serializeDelivery } from '../serialize.ts';
import { actionOf, actionOn, traced } from '../traces.ts';

const refusals: Record<TryNowRefusal, string> = {
  not_waiting: 'Only a delivery that waits for a retry can be tried now.',
  not_active: `${notActive('Its address')}.`,
  already_due: 'Its next attempt is due already.',
};

/** The addresses of these to which something may be sent now. */
async function sendableAmong(store: Store, subscriptionIds: readonly string[]): Promise<Set<string>> {
  const loaded = await loadSubscriptions(store, [...new Set(subscriptionIds)]);
  return new Set(loaded.flatMap((one) => (one?.status === 'active' ? [one.id] : [])));
}

export function tryNowRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  const deliveries = api.tagged('Deliveries');

  deliveries.post('/v1/deliveries/{id}/try-now', {
    summary: 'Make the next attempt of a waiting delivery now',
    description:
      'For a delivery with status waiting_for_retry whose receiver works again. It counts as the next attempt; if it fails, the delay after it is that of the schedule.',
    params: schemas.deliveryParamsSchema,
    responses: { 202: { description: 'The delivery; its attempt is due', schema: schemas.deliverySchema } },
    problems: ['conflict'],
    async handle({ params: { id }, caller, request }) {
      const delivery = await findDelivery(store, id);
      const { subscriptionId } = delivery;
      const action = await actionOn(context, delivery, request, 'try_now', false);
      await traced(context, action, async (_trace, fields) => {
        const refused = await tryNow(store, id, clock.now(), { operator: caller, subscriptionId });
        if (refused) throw new AppError('conflict', refusals[refused]);
        const line = { delivery_id: id, subscription_id: subscriptionId, operator: caller, ...fields };
        logger.info(line, 'delivery.tried_now');
      });
      return serializeDelivery(await findDelivery(store, id), store.retentionMs);
    },
  });

  deliveries.post('/v1/deliveries/try-now', {
    summary: 'Make the next attempts of many waiting deliveries now',
    description:
      'Takes the filters of the list of deliveries; without any, all deliveries that wait for a retry are meant. It looks at up to `limit` of them, the newest first; to go on, repeat it with `next_cursor`. Those whose address is not active, or whose attempt is due already, are left as they are, so a call may be repeated. Each attempt counts as the next one. If 20 in a row fail, the address is paused and the rest is held, as always.',
    body: schemas.tryNowSchema,
    responses: { 202: { description: 'The deliveries whose attempt is due', schema: schemas.triedNowSchema } },
    async handle({ body: { limit, cursor, ...fields }, caller, request }) {
      const nowMs = clock.now();
      const filter = { ...deliveryFilterOf(fields), status: 'waiting_for_retry' } as const;
      const { items, nextCursor } = await listDeliveries(store, filter, { limit, cursor }, nowMs);
      const sendable = await sendableAmong(
        store,
        items.map(({ subscriptionId }) => subscriptionId),
      );
      const waiting = items.filter(
        ({ nextAttemptAtMs, subscriptionId }) => (nextAttemptAtMs ?? 0) > nowMs && sendable.has(subscriptionId),
      );
      if (waiting.length === 0) return { data: [], next_cursor: nextCursor };
      return await traced(context, actionOf(request, 'try_now', false), async (_trace, trace) => {
        const subscriptionId = fields.subscription_id;
        const detail = { deliveries: waiting.length };
        // Before the attempts: a crash in between must not hide who asked for them.
        await appendAudit(store, { action: 'delivery.tried_now', operator: caller, subscriptionId, detail }, nowMs);
        // The oldest is sent first.
        const ids = waiting.map(({ id }) => id).reverse();
        const trying = ids.map(async (id) => ((await tryNow(store, id, nowMs)) === undefined ? [id] : []));
        const results = await allParts(trying, (made) =>
          made.flat().length === 0
            ? undefined
            : `At least ${made.flat().length} of ${ids.length} deliveries are tried now. Repeat the call for the rest: of these, it tries again only those that have failed by then.`,
        );
        const tried = results.flat();
        const line = { deliveries: tried.length, subscription_id: subscriptionId, operator: caller, ...trace };
        logger.info(line, 'deliveries.tried_now');
        return { data: tried, next_cursor: nextCursor };
      });
    },
  });
}
