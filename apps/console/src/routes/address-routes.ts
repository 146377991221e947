/**
 * Routes for the address of a subscription: validate, pause, test (specification 3.2, interface 4). Those that resume
 * are in resume-routes.ts.
 */
import { AppError, nextAddressState, TEST_EVENT_TYPE } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { deliverySchema, testDeliverySchema } from '@posthorn/operator-api';
import { loadDeliveries, makeTestDelivery } from '@posthorn/store';
import { change, findSubscription, subscriptionRoute } from '../change-subscription.ts';
import type { ConsoleContext } from '../context.ts';
import { serializeDelivery, serializeSubscription } from '../serialize.ts';
import { actionOf, traced } from '../traces.ts';
import { validateSubscription } from '../validate-address.ts';
import { resumeRoutes } from './resume-routes.ts';

/** Each action is refused with 409 in some statuses of the address. */
const action = { ...subscriptionRoute, problems: ['conflict'] as const };

export function addressRoutes(api: Api, context: ConsoleContext): void {
  statusRoutes(api, context);
  resumeRoutes(api, context);
  testRoute(api, context);
}

function statusRoutes(api: Api, context: ConsoleContext): void {
  const subscriptions = api.tagged('Subscriptions');

  subscriptions.post('/v1/subscriptions/{id}/validate', {
    ...action,
    summary: 'Validate its address',
    description:
      'Resolves the name, checks every IP, and sends one POST with body {}. Any response but a redirect makes it active.',
    async handle({ params: { id }, caller }) {
      const validated = await validateSubscription(context, id, caller);
      const { status, statusReason: reason } = validated;
      context.logger.info({ subscription_id: id, operator: caller, status, reason }, 'subscription.validated');
      return await serializeSubscription(context, validated);
    },
  });

  subscriptions.post('/v1/subscriptions/{id}/pause', {
    ...action,
    summary: 'Pause it: deliveries are held',
    async handle({ params: { id }, caller }) {
      const paused = await change(context, id, {
        operator: caller,
        action: 'subscription.paused',
        next: (now) => nextAddressState(now, { kind: 'paused' }),
        detail: () => ({ reason: 'operator' }),
      });
      return await serializeSubscription(context, paused);
    },
  });
}

function testRoute(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  api.tagged('Subscriptions').post('/v1/subscriptions/{id}/test', {
    ...action,
    summary: 'Send it a test delivery',
    description:
      'Sends an event of type webhook.test with sample data to this address only, whatever types it selected.',
    body: testDeliverySchema,
    optionalBody: true,
    responses: { 202: { description: 'The delivery', schema: deliverySchema } },
    async handle({ params: { id }, body: { environment }, caller, request }) {
      const subscription = await findSubscription(context, id);
      const publication = actionOf(request, 'publish', true, TEST_EVENT_TYPE);
      const deliveryId = await traced(context, publication, async (trace, fields) => {
        const made = await makeTestDelivery(
          context,
          subscription,
          { environment, operator: caller, trace },
          clock.now(),
        );
        logger.info({ delivery_id: made, subscription_id: id, operator: caller, ...fields }, 'subscription.tested');
        return made;
      });
      const [delivery] = await loadDeliveries(store, [deliveryId]);
      if (!delivery) throw new AppError('conflict', 'The subscription was deleted meanwhile.');
      return serializeDelivery(delivery, store.retentionMs);
    },
  });
}
