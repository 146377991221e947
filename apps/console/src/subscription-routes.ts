/** The operator API's calls on subscriptions (interface 4). */
import { AppError, type AuditEntry, newSubscriptionId, type SubscriptionEnvironment } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import {
  addressAttemptsSchema,
  deliverySchema,
  failedDeliveriesQuerySchema,
  failedDeliveriesSchema,
  newSubscriptionSchema,
  pageOf,
  rotationSchema,
  subscriptionParamsSchema,
  subscriptionPatchSchema,
  subscriptionSchema,
  subscriptionsQuerySchema,
  subscriptionWithSecretSchema,
  testDeliverySchema,
} from '@posthorn/operator-api';
import { checkUrl } from '@posthorn/sender';
import { newSigningSecret } from '@posthorn/signing';
import {
  changeSubscription,
  closeSubscription,
  countFailed,
  deleteSubscription,
  listSubscriptions,
  loadDeliveries,
  loadSubscriptions,
  newSubscription,
  type StoredSubscription,
  saveSubscription,
} from '@posthorn/store';
import { attemptsInFlight } from './attempts-in-flight.ts';
import type { ConsoleContext } from './context.ts';
import { serializeAddressAttempts } from './overview.ts';
import { serializeDelivery, serializePage, serializeSubscription } from './serialize.ts';
import { sendTest } from './test-delivery.ts';
import { validateSubscription } from './validate-address.ts';

const tag = 'Subscriptions';
const one = { tag, params: subscriptionParamsSchema } as const;
const answersSubscription = { 200: { description: 'The subscription', schema: subscriptionSchema } };
/** A delete answers after this even if the deliveries of a busy address are still being ended; the housekeeper goes on. */
const DELETE_WAIT_MS = 5_000;

export function subscriptionRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  const serialize = (subscription: StoredSubscription) => serializeSubscription(store, subscription, clock.now());

  api.route(
    {
      method: 'post',
      path: '/v1/subscriptions',
      summary: 'Create a subscription',
      description: 'It awaits validation. An address that can be seen to be private, local or malformed is refused.',
      tag,
      body: newSubscriptionSchema,
      answers: { 201: { description: 'The subscription and its secret', schema: subscriptionWithSecretSchema } },
    },
    async ({ body: fields, caller }) => {
      checkAddress(context, fields.url, fields.environment);
      const id = newSubscriptionId();
      const secret = fields.secret ?? newSigningSecret();
      const { url, environment, event_types: eventTypes, description = '' } = fields;
      const sealedSecret = context.secretBox.seal(secret, id);
      const created = newSubscription({ id, url, eventTypes, environment, description, sealedSecret }, clock.now());
      const detail = { url, event_types: eventTypes, environment, description };
      const audit: AuditEntry = { operator: caller, action: 'subscription.created', detail };
      if (!(await saveSubscription(store, created, { audit })))
        throw new Error(`The new subscription ${id} could not be saved`);
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.created');
      return { status: 201, body: { ...(await serialize(created)), secret } };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/subscriptions',
      summary: 'List subscriptions, newest first',
      tag,
      query: subscriptionsQuerySchema,
      answers: { 200: { description: 'A page of subscriptions', schema: pageOf(subscriptionSchema) } },
    },
    async ({ query: { limit, cursor, ...filter } }) => {
      return {
        status: 200,
        body: await serializePage(await listSubscriptions(store, filter, limit, cursor), serialize),
      };
    },
  );

  api.route(
    { ...one, method: 'get', path: '/v1/subscriptions/{id}', summary: 'Read one', answers: answersSubscription },
    async ({ params: { id } }) => {
      const [found] = await loadSubscriptions(store, [id]);
      return { status: 200, body: await serialize(found ?? missing()) };
    },
  );

  api.route(
    {
      ...one,
      method: 'patch',
      path: '/v1/subscriptions/{id}',
      summary: 'Change some fields',
      description:
        'A new url goes back to awaiting validation. The answer comes once no attempt to the old one is in flight any more, so it may take as long as an attempt.',
      body: subscriptionPatchSchema,
      answers: answersSubscription,
    },
    async ({ params: { id }, body: patch, caller }) => {
      let moved = false;
      const next = (now: StoredSubscription): StoredSubscription => {
        const environment = patch.environment ?? now.environment;
        const url = patch.url ?? now.url;
        moved = url !== now.url;
        if (patch.url !== undefined || patch.environment !== undefined) checkAddress(context, url, environment);
        const eventTypes = patch.event_types ?? now.eventTypes;
        const changed = { ...now, url, eventTypes, environment, description: patch.description ?? now.description };
        // What is known of the old address says nothing about a new one.
        return moved
          ? { ...changed, status: 'awaiting_validation', statusReason: null, consecutiveFailures: 0 }
          : changed;
      };
      const changed = await change(context, id, next, (before, after) => ({
        operator: caller,
        action: 'subscription.updated',
        detail: differences(before, after),
      }));
      if (moved) await attemptsInFlight(context, id);
      return { status: 200, body: await serialize(changed) };
    },
  );

  api.route(
    {
      ...one,
      method: 'delete',
      path: '/v1/subscriptions/{id}',
      summary: 'Delete it; its unfinished deliveries end as failed',
      answers: { 204: { description: 'It is gone' } },
    },
    async ({ params: { id }, caller }) => {
      if (!(await deleteSubscription(store, id, clock.now(), { operator: caller }))) missing();
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.deleted');
      const closing = closeSubscription(store, id, clock.now(), context.producer.remove).catch((err: unknown) => {
        context.logger.warn({ err, subscription_id: id }, 'subscription.close_interrupted');
      });
      const timeUp = Promise.withResolvers<void>();
      const timer = setTimeout(timeUp.resolve, DELETE_WAIT_MS);
      await Promise.race([closing, timeUp.promise]);
      clearTimeout(timer);
      return { status: 204 };
    },
  );

  api.route(
    {
      ...one,
      method: 'post',
      path: '/v1/subscriptions/{id}/validate',
      summary: 'Validate its address',
      description:
        'Resolves the name, checks every IP, and sends one POST with body {}. Any answer but a redirect makes it active.',
      answers: answersSubscription,
      problems: [409],
    },
    async ({ params: { id }, caller }) => {
      const validated = (await validateSubscription(context, id, caller)) ?? missing();
      const { status, statusReason: reason } = validated;
      context.logger.info({ subscription_id: id, operator: caller, status, reason }, 'subscription.validated');
      return { status: 200, body: await serialize(validated) };
    },
  );

  api.route(
    {
      ...one,
      method: 'post',
      path: '/v1/subscriptions/{id}/pause',
      summary: 'Pause it: deliveries are held',
      answers: answersSubscription,
      problems: [409],
    },
    async ({ params: { id }, caller }) => {
      const pause = (now: StoredSubscription): StoredSubscription | undefined => {
        if (now.status === 'paused') return undefined;
        if (now.status !== 'active')
          throw new AppError('conflict', `Only an active address can be paused; this one is ${now.status}.`);
        return { ...now, status: 'paused', statusReason: 'operator' };
      };
      const detail = { reason: 'operator' };
      const paused = await change(context, id, pause, () => ({
        operator: caller,
        action: 'subscription.paused',
        detail,
      }));
      return { status: 200, body: await serialize(paused) };
    },
  );

  api.route(
    {
      ...one,
      method: 'post',
      path: '/v1/subscriptions/{id}/resume',
      summary: 'Resume it: consecutive failures go to 0, what was held is sent',
      answers: answersSubscription,
      problems: [409],
    },
    async ({ params: { id }, caller }) => {
      const resume = (now: StoredSubscription): StoredSubscription => {
        if (now.status !== 'paused' && now.status !== 'active') {
          throw new AppError(
            'conflict',
            `Only a paused address can be resumed; this one is ${now.status}. Validate it.`,
          );
        }
        return { ...now, status: 'active', statusReason: null, consecutiveFailures: 0 };
      };
      const resumed = await change(context, id, resume, ({ consecutiveFailures, statusReason }) => ({
        operator: caller,
        action: 'subscription.resumed',
        detail: { was_paused_for: statusReason, consecutive_failures: consecutiveFailures },
      }));
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.resumed');
      return { status: 200, body: await serialize(resumed) };
    },
  );

  api.route(
    {
      ...one,
      method: 'post',
      path: '/v1/subscriptions/{id}/rotate-secret',
      summary: 'Give it a new secret',
      description:
        'Until the overlap ends (24h unless said otherwise, 0s to 30d) both secrets sign, the new one first. A second rotation within it ends the oldest at once.',
      body: rotationSchema,
      optionalBody: true,
      answers: { 200: { description: 'The subscription and its new secret', schema: subscriptionWithSecretSchema } },
    },
    async ({ params: { id }, body: { overlap }, caller }) => {
      const secret = newSigningSecret();
      const sealedSecret = context.secretBox.seal(secret, id);
      const rotate = (now: StoredSubscription): StoredSubscription => ({
        ...now,
        sealedSecret,
        previousSealedSecret: overlap > 0 ? now.sealedSecret : null,
        previousSecretUntilMs: clock.now() + overlap,
      });
      const rotated = await change(context, id, rotate, (_before, { previousSecretUntilMs }) => ({
        operator: caller,
        action: 'subscription.secret_rotated',
        detail: { previous_secret_until: new Date(previousSecretUntilMs).toISOString() },
      }));
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.secret_rotated');
      return { status: 200, body: { ...(await serialize(rotated)), secret } };
    },
  );

  api.route(
    {
      ...one,
      method: 'post',
      path: '/v1/subscriptions/{id}/test',
      summary: 'Send it a test delivery',
      description: 'An event of type webhook.test with a sample snapshot, to this address alone, whatever it selected.',
      body: testDeliverySchema,
      optionalBody: true,
      answers: { 202: { description: 'The delivery', schema: deliverySchema } },
      problems: [409],
    },
    async ({ params: { id }, body, caller }) => {
      const [subscription] = await loadSubscriptions(store, [id]);
      const deliveryId = await sendTest(context, subscription ?? missing(), body.environment, caller);
      const [delivery] = await loadDeliveries(store, [deliveryId]);
      if (!delivery) throw new AppError('conflict', 'The subscription was deleted meanwhile.');
      return { status: 202, body: serializeDelivery(delivery, store.retentionMs) };
    },
  );

  api.route(
    {
      ...one,
      method: 'get',
      path: '/v1/subscriptions/{id}/attempts',
      summary: 'How attempts to it went over the last 24 hours',
      answers: { 200: { description: 'Hour by hour', schema: addressAttemptsSchema } },
    },
    async ({ params: { id } }) => {
      const [found] = await loadSubscriptions(store, [id]);
      return { status: 200, body: await serializeAddressAttempts(store, (found ?? missing()).id, clock.now()) };
    },
  );

  api.route(
    {
      ...one,
      method: 'get',
      path: '/v1/subscriptions/{id}/failed-deliveries',
      summary: 'Count what a bulk replay would look at',
      query: failedDeliveriesQuerySchema,
      answers: { 200: { description: 'Failed deliveries made in the time', schema: failedDeliveriesSchema } },
    },
    async ({ params: { id }, query: { from = 0, to = Number.MAX_SAFE_INTEGER } }) => {
      const [found] = await loadSubscriptions(store, [id]);
      const { id: subscription_id } = found ?? missing();
      return { status: 200, body: { subscription_id, count: await countFailed(store, id, from, to, clock.now()) } };
    },
  );
}

async function change(
  { store, clock }: ConsoleContext,
  id: string,
  next: (now: StoredSubscription) => StoredSubscription | undefined,
  audit: (before: StoredSubscription, after: StoredSubscription) => AuditEntry,
): Promise<StoredSubscription> {
  const stamped = (now: StoredSubscription) => {
    const changed = next(now);
    return changed && { ...changed, updatedAtMs: clock.now() };
  };
  return (await changeSubscription(store, id, stamped, audit)) ?? missing();
}

/** The fields that an operator sees change, before and after. */
function differences(before: StoredSubscription, after: StoredSubscription): Record<string, unknown> {
  const fields = (of: StoredSubscription) => ({
    url: of.url,
    event_types: of.eventTypes,
    environment: of.environment,
    description: of.description,
    status: of.status,
  });
  const [from, to] = [fields(before), fields(after)];
  const names = Object.keys(from) as (keyof typeof from)[];
  return Object.fromEntries(
    names
      .filter((name) => JSON.stringify(from[name]) !== JSON.stringify(to[name]))
      .map((name) => [name, { from: from[name], to: to[name] }]),
  );
}

/** Refuses an address that can be seen to be private, local, malformed or not encrypted where it must be. */
function checkAddress(context: ConsoleContext, url: string, environment: SubscriptionEnvironment): void {
  const check = checkUrl(url, context.allowedNetworks);
  const message = check.ok ? httpsProblem(context, check.url, environment) : check.message;
  if (message !== undefined) {
    throw new AppError('invalid_fields', 'The address is refused.', { fields: [{ path: 'url', message }] });
  }
}

function httpsProblem(
  { requireHttps }: ConsoleContext,
  url: URL,
  environment: SubscriptionEnvironment,
): string | undefined {
  const required = requireHttps === 'always' || (requireHttps === 'production' && environment !== 'sandbox');
  return required && url.protocol !== 'https:' ? 'Events of this environment go to https addresses only.' : undefined;
}

function missing(): never {
  throw new AppError('not_found', 'There is no such subscription.');
}
