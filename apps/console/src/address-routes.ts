/** The operator API's calls on the address of a subscription: validate, pause, resume, test (specification 3.2, interface 4). */
import { AppError, nextAddressState } from '@posthorn/core';
import { makeTestDelivery } from '@posthorn/dispatch';
import type { Api } from '@posthorn/http';
import { deliverySchema, testDeliverySchema } from '@posthorn/operator-api';
import { loadDeliveries, type StoredSubscription } from '@posthorn/store';
import { change, findSubscription, ofSubscription, returnsSubscription, serialize } from './change-subscription.ts';
import type { ConsoleContext } from './context.ts';
import { serializeDelivery } from './serialize.ts';
import { validateSubscription } from './validate-address.ts';

/** Each is refused with 409 in some statuses of the address. */
const action = { ...ofSubscription, method: 'post', responses: returnsSubscription, problems: [409] } as const;

export function addressRoutes(api: Api, context: ConsoleContext): void {
  validateRoute(api, context);
  pauseRoutes(api, context);
  testRoute(api, context);
}

function validateRoute(api: Api, context: ConsoleContext): void {
  api.route(
    {
      ...action,
      path: '/v1/subscriptions/{id}/validate',
      summary: 'Validate its address',
      description:
        'Resolves the name, checks every IP, and sends one POST with body {}. Any answer but a redirect makes it active.',
    },
    async ({ params: { id }, caller }) => {
      const validated = await validateSubscription(context, id, caller);
      const { status, statusReason: reason } = validated;
      context.logger.info({ subscription_id: id, operator: caller, status, reason }, 'subscription.validated');
      return { status: 200, body: await serialize(context, validated) };
    },
  );
}

function pauseRoutes(api: Api, context: ConsoleContext): void {
  api.route(
    {
      ...action,
      path: '/v1/subscriptions/{id}/pause',
      summary: 'Pause it: deliveries are held',
    },
    async ({ params: { id }, caller }) => {
      const pause = (now: StoredSubscription) => nextAddressState(now, { kind: 'paused' });
      const audit = { operator: caller, action: 'subscription.paused', detail: { reason: 'operator' } } as const;
      return { status: 200, body: await serialize(context, await change(context, id, pause, () => audit)) };
    },
  );

  api.route(
    {
      ...action,
      path: '/v1/subscriptions/{id}/resume',
      summary: 'Resume it: consecutive failures go to 0, what was held is sent',
    },
    async ({ params: { id }, caller }) => {
      const resume = (now: StoredSubscription) => nextAddressState(now, { kind: 'resumed' });
      const resumed = await change(context, id, resume, ({ consecutiveFailures, statusReason }) => ({
        operator: caller,
        action: 'subscription.resumed',
        detail: { was_paused_for: statusReason, consecutive_failures: consecutiveFailures },
      }));
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.resumed');
      return { status: 200, body: await serialize(context, resumed) };
    },
  );
}

function testRoute(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  api.route(
    {
      ...action,
      path: '/v1/subscriptions/{id}/test',
      summary: 'Send it a test delivery',
      description: 'An event of type webhook.test with a sample snapshot, to this address alone, whatever it selected.',
      body: testDeliverySchema,
      optionalBody: true,
      responses: { 202: { description: 'The delivery', schema: deliverySchema } },
    },
    async ({ params: { id }, body: { environment }, caller }) => {
      const subscription = await findSubscription(context, id);
      const deliveryId = await makeTestDelivery(context, subscription, environment, caller, clock.now());
      const [delivery] = await loadDeliveries(store, [deliveryId]);
      if (!delivery) throw new AppError('conflict', 'The subscription was deleted meanwhile.');
      return { status: 202, body: serializeDelivery(delivery, store.retentionMs) };
    },
  );
}
