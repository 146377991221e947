/** The operator API's calls on subscriptions (interface 4). Those on their addresses are in address-routes.ts. */
import { setTimeout as wait } from 'node:timers/promises';
import {
  AppError,
  type AuditEntry,
  newSubscriptionId,
  nextAddressState,
  type SubscriptionEnvironment,
} from '@posthorn/core';
import type { Api } from '@posthorn/http';
import {
  addressAttemptsSchema,
  failedDeliveriesQuerySchema,
  failedDeliveriesSchema,
  newSubscriptionSchema,
  pageOf,
  rotationSchema,
  subscriptionPatchSchema,
  subscriptionSchema,
  subscriptionsQuerySchema,
  subscriptionWithSecretSchema,
} from '@posthorn/operator-api';
import { checkUrl } from '@posthorn/sender';
import { newSigningSecret } from '@posthorn/signing';
import {
  closeSubscription,
  countFailed,
  deleteSubscription,
  listSubscriptions,
  newSubscription,
  type StoredSubscription,
  saveSubscription,
} from '@posthorn/store';
import { attemptsInFlight } from './attempts-in-flight.ts';
import {
  change,
  findSubscription,
  missing,
  ofSubscription,
  returnsSubscription,
  serialize,
} from './change-subscription.ts';
import type { ConsoleContext } from './context.ts';
import { serializeAddressAttempts } from './overview.ts';
import { serializePage } from './serialize.ts';

/** A delete returns after this even if the deliveries of a busy address are still being ended; maintenance ends the rest. */
const MAX_DELETE_WAIT_MS = 5_000;

export function subscriptionRoutes(api: Api, context: ConsoleContext): void {
  createRoute(api, context);
  readRoutes(api, context);
  updateRoute(api, context);
  deleteRoute(api, context);
  rotateSecretRoute(api, context);
  statisticsRoutes(api, context);
}

function createRoute(api: Api, context: ConsoleContext): void {
  api.route(
    {
      method: 'post',
      path: '/v1/subscriptions',
      summary: 'Create a subscription',
      description: 'It awaits validation. An address that can be seen to be private, local or malformed is refused.',
      tag: ofSubscription.tag,
      body: newSubscriptionSchema,
      responses: { 201: { description: 'The subscription and its secret', schema: subscriptionWithSecretSchema } },
    },
    async ({ body: fields, caller }) => {
      checkAddress(context, fields.url, fields.environment);
      const id = newSubscriptionId();
      const secret = fields.secret ?? newSigningSecret();
      const { url, environment, event_types: eventTypes, description = '' } = fields;
      const sealedSecret = context.secretBox.seal(secret, id);
      const created = newSubscription(
        { id, url, eventTypes, environment, description, sealedSecret },
        context.clock.now(),
      );
      const detail = { url, event_types: eventTypes, environment, description };
      const audit: AuditEntry = { operator: caller, action: 'subscription.created', detail };
      if (!(await saveSubscription(context.store, created, { audit })))
        throw new Error(`The new subscription ${id} could not be saved`);
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.created');
      return { status: 201, body: { ...(await serialize(context, created)), secret } };
    },
  );
}

function readRoutes(api: Api, context: ConsoleContext): void {
  api.route(
    {
      method: 'get',
      path: '/v1/subscriptions',
      summary: 'List subscriptions, newest first',
      tag: ofSubscription.tag,
      query: subscriptionsQuerySchema,
      responses: { 200: { description: 'A page of subscriptions', schema: pageOf(subscriptionSchema) } },
    },
    async ({ query: { limit, cursor, ...filter } }) => {
      const page = await listSubscriptions(context.store, filter, limit, cursor);
      return { status: 200, body: await serializePage(page, (item) => serialize(context, item)) };
    },
  );

  api.route(
    {
      ...ofSubscription,
      method: 'get',
      path: '/v1/subscriptions/{id}',
      summary: 'Read one',
      responses: returnsSubscription,
    },
    async ({ params: { id } }) => {
      return { status: 200, body: await serialize(context, await findSubscription(context, id)) };
    },
  );
}

function updateRoute(api: Api, context: ConsoleContext): void {
  api.route(
    {
      ...ofSubscription,
      method: 'patch',
      path: '/v1/subscriptions/{id}',
      summary: 'Change some fields',
      description:
        'A new url goes back to awaiting validation. The answer comes once no attempt to the old one is in flight any more, so it may take as long as an attempt.',
      body: subscriptionPatchSchema,
      responses: returnsSubscription,
      problems: [409],
    },
    async ({ params: { id }, body: patch, caller }) => {
      let urlChanged = false;
      const next = (now: StoredSubscription): StoredSubscription => {
        const { url = now.url, environment = now.environment, description = now.description } = patch;
        if (patch.url !== undefined || patch.environment !== undefined) checkAddress(context, url, environment);
        const changed = { ...now, url, environment, description, eventTypes: patch.event_types ?? now.eventTypes };
        urlChanged = url !== now.url;
        return urlChanged ? nextAddressState(changed, { kind: 'url_changed' }) : changed;
      };
      const changed = await change(context, id, next, (before, after) => ({
        operator: caller,
        action: 'subscription.updated',
        detail: differences(before, after),
      }));
      if (urlChanged) await attemptsInFlight(context, id);
      return { status: 200, body: await serialize(context, changed) };
    },
  );
}

function deleteRoute(api: Api, context: ConsoleContext): void {
  const { store, clock, producer, logger } = context;
  api.route(
    {
      ...ofSubscription,
      method: 'delete',
      path: '/v1/subscriptions/{id}',
      summary: 'Delete it; its unfinished deliveries end as failed',
      responses: { 204: { description: 'It is gone' } },
    },
    async ({ params: { id }, caller }) => {
      if (!(await deleteSubscription(store, id, clock.now(), { operator: caller }))) missing();
      logger.info({ subscription_id: id, operator: caller }, 'subscription.deleted');
      const closing = closeSubscription(store, id, clock.now(), producer.remove).catch((err: unknown) => {
        logger.warn({ err, subscription_id: id }, 'subscription.close_interrupted');
      });
      await Promise.race([closing, wait(MAX_DELETE_WAIT_MS, undefined, { ref: false })]);
      return { status: 204 };
    },
  );
}

function rotateSecretRoute(api: Api, context: ConsoleContext): void {
  api.route(
    {
      ...ofSubscription,
      method: 'post',
      path: '/v1/subscriptions/{id}/rotate-secret',
      summary: 'Give it a new secret',
      description:
        'Until the overlap ends (24h unless said otherwise, 0s to 30d) both secrets sign, the new one first. A second rotation within it ends the oldest at once.',
      body: rotationSchema,
      optionalBody: true,
      responses: { 200: { description: 'The subscription and its new secret', schema: subscriptionWithSecretSchema } },
      problems: [409],
    },
    async ({ params: { id }, body: { overlap }, caller }) => {
      const secret = newSigningSecret();
      const sealedSecret = context.secretBox.seal(secret, id);
      const rotate = (now: StoredSubscription): StoredSubscription => ({
        ...now,
        sealedSecret,
        previousSealedSecret: overlap > 0 ? now.sealedSecret : null,
        previousSecretUntilMs: context.clock.now() + overlap,
      });
      const rotated = await change(context, id, rotate, (_before, { previousSecretUntilMs }) => ({
        operator: caller,
        action: 'subscription.secret_rotated',
        detail: { previous_secret_until: new Date(previousSecretUntilMs).toISOString() },
      }));
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.secret_rotated');
      return { status: 200, body: { ...(await serialize(context, rotated)), secret } };
    },
  );
}

function statisticsRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  api.route(
    {
      ...ofSubscription,
      method: 'get',
      path: '/v1/subscriptions/{id}/attempts',
      summary: 'How attempts to it went over the last 24 hours',
      responses: { 200: { description: 'Hour by hour', schema: addressAttemptsSchema } },
    },
    async ({ params: { id } }) => {
      await findSubscription(context, id);
      return { status: 200, body: await serializeAddressAttempts(store, id, clock.now()) };
    },
  );

  api.route(
    {
      ...ofSubscription,
      method: 'get',
      path: '/v1/subscriptions/{id}/failed-deliveries',
      summary: 'Count what a bulk replay would look at',
      query: failedDeliveriesQuerySchema,
      responses: { 200: { description: 'Failed deliveries made in the time', schema: failedDeliveriesSchema } },
    },
    async ({ params: { id }, query: { from = 0, to = Number.MAX_SAFE_INTEGER } }) => {
      await findSubscription(context, id);
      return { status: 200, body: { subscription_id: id, count: await countFailed(store, id, from, to, clock.now()) } };
    },
  );
}

/** The fields that an operator sees change, before and after. */
function differences(before: StoredSubscription, after: StoredSubscription): Record<string, unknown> {
  const visible = ['url', 'eventTypes', 'environment', 'description', 'status'] as const;
  const changed = visible.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  const nameOf = (field: string) => (field === 'eventTypes' ? 'event_types' : field);
  return Object.fromEntries(changed.map((field) => [nameOf(field), { from: before[field], to: after[field] }]));
}

/** Throws `AppError` for an address that is malformed, visibly private or local, or not encrypted where it must be. */
function checkAddress(context: ConsoleContext, url: string, environment: SubscriptionEnvironment): void {
  const { allowedNetworks, requireHttps } = context;
  const refusal = (message: string) =>
    new AppError('invalid_fields', 'The address is refused.', { fields: [{ path: 'url', message }] });
  const check = checkUrl(url, allowedNetworks);
  if (!check.ok) throw refusal(check.message);
  const needsHttps = requireHttps === 'always' || (requireHttps === 'production' && environment !== 'sandbox');
  if (needsHttps && check.url.protocol !== 'https:')
    throw refusal('Events of this environment go to https addresses only.');
}
