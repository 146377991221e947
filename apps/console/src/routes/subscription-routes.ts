/** Routes for subscriptions (interface 4). Those for their addresses are in address-routes.ts. */
import { setTimeout as wait } from 'node:timers/promises';
import {
  AppError,
  type AuditEntry,
  newSubscriptionId,
  nextAddressState,
  type SubscriptionEnvironment,
  subscriptionIdOfKey,
} from '@posthorn/core';
import { closeSubscription } from '@posthorn/dispatch';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import { checkUrl } from '@posthorn/sender';
import { newSigningSecret } from '@posthorn/signing';
import {
  countCovered,
  deleteSubscription,
  loadOthers,
  loadSubscriptions,
  newSubscription,
  readNames,
  type StoredSubscription,
  saveSubscription,
} from '@posthorn/store';
import { change, findSubscription, subscriptionRoute } from '../change-subscription.ts';
import type { ConsoleContext } from '../context.ts';
import { missing } from '../missing.ts';
import { serializeAddressAttempts } from '../overview.ts';
import { replayScopeOf } from '../replay-scope.ts';
import { rotateSecret } from '../rotate-secret.ts';
import { nameUnreadable, serializeListedSubscriptions, serializeSubscription } from '../serialize.ts';
import { untilAttemptsEnd } from '../until-attempts-end.ts';

/**
 * A delete returns after this time even if not all deliveries of a busy address have ended; maintenance ends the rest.
 */
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
  api.tagged('Subscriptions').post('/v1/subscriptions', {
    summary: 'Create a subscription',
    description: 'Its address awaits validation. Visibly private, local or malformed addresses are refused.',
    body: schemas.newSubscriptionSchema,
    responses: {
      201: { description: 'The subscription and its secret', schema: schemas.subscriptionWithSecretSchema },
    },
    problems: ['conflict'],
    async handle({ body, caller }) {
      const { key, url, environment, event_types: eventTypes, description = '', secret = newSigningSecret() } = body;
      checkAddress(context, url, environment);
      const id = key === undefined ? newSubscriptionId() : subscriptionIdOfKey(key);
      const sealedSecret = context.secretBox.seal(secret, id);
      const fields = { id, key: key ?? null, url, eventTypes, environment, description, sealedSecret };
      const created = newSubscription(fields, context.clock.now());
      const detail = { ...(key !== undefined && { key }), url, event_types: eventTypes, environment, description };
      const audit: AuditEntry = { operator: caller, action: 'subscription.created', detail };
      if (!(await saveSubscription(context.store, created, { audit }))) throw await keyInUse(context, id);
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.created');
      return { ...(await serializeSubscription(context, created)), secret };
    },
  });
}

/** The error for a key whose subscription exists, or was deleted a moment ago. */
async function keyInUse({ store }: ConsoleContext, id: string): Promise<AppError> {
  const [existing] = await loadSubscriptions(store, [id]);
  const message = existing
    ? `The subscription ${id} has this key.`
    : `The subscription ${id} with this key was deleted, and its deliveries are still being ended. Try again soon.`;
  return new AppError('conflict', message);
}

function readRoutes(api: Api, context: ConsoleContext): void {
  const subscriptions = api.tagged('Subscriptions');

  subscriptions.get('/v1/subscriptions', {
    summary: 'List, search, filter and sort subscriptions',
    description:
      'Finds what was stored before the call. A page may be shorter than `limit` if subscriptions change meanwhile.',
    query: schemas.subscriptionsQuerySchema,
    responses: { 200: { description: 'A page of subscriptions', schema: schemas.subscriptionsPageSchema } },
    async handle({ query: { limit, cursor, q, status, environment, health, sort, ...unused } }) {
      unused satisfies Record<string, never>;
      const query = { q, status, environment, health, sort };
      const found = await context.directory.find(query, { limit, cursor, leaveOutUnreadable: true });
      const serialize = (some: StoredSubscription[]) => serializeListedSubscriptions(context, some);
      // Of one, the health may be what can't be read.
      const unreadable = [...found.unreadable];
      const items = await loadOthers(serialize, found.items, unreadable);
      // The health of a subscription may have changed since it was found.
      const data = items.filter(({ health: { state } }) => health === undefined || health === state);
      return { data, next_cursor: found.nextCursor, total: found.total, ...nameUnreadable(context, unreadable) };
    },
  });

  // Before the route of one subscription: a path ends at the first route that it matches.
  subscriptions.get('/v1/subscriptions/lookup', {
    summary: 'Read the addresses and descriptions of some',
    query: schemas.lookupQuerySchema,
    responses: { 200: { description: 'Their names', schema: schemas.subscriptionNamesSchema } },
    async handle({ query: { ids } }) {
      return { data: await readNames(context.store, ids) };
    },
  });

  subscriptions.get('/v1/subscriptions/{id}', {
    ...subscriptionRoute,
    summary: 'Read one',
    async handle({ params: { id } }) {
      return await serializeSubscription(context, await findSubscription(context, id));
    },
  });
}

function updateRoute(api: Api, context: ConsoleContext): void {
  api.tagged('Subscriptions').patch('/v1/subscriptions/{id}', {
    ...subscriptionRoute,
    summary: 'Change some fields',
    description:
      'A new url must be validated. The response comes when no attempt to the old url is in flight, so it may take as long as an attempt. New types and a new environment apply to events that are accepted from then on: deliveries that were made before, those that are held or wait for a retry included, are still sent, and go to the new url.',
    body: schemas.subscriptionPatchSchema,
    problems: ['conflict'],
    async handle({ params: { id }, body: patch, caller }) {
      let urlChanged = false;
      const changed = await change(context, id, {
        operator: caller,
        action: 'subscription.updated',
        next(now) {
          const { url = now.url, environment = now.environment, description = now.description } = patch;
          if (patch.url !== undefined) checkAddress(context, url, environment);
          else if (patch.environment !== undefined) checkAddress(context, url, environment, 'environment');
          const patched = { ...now, url, environment, description, eventTypes: patch.event_types ?? now.eventTypes };
          if (url === now.url) return patched;
          // It stays so: if the reply of a first try was lost, the second one may find the new url.
          urlChanged = true;
          return nextAddressState({ ...patched, lastValidation: null }, { kind: 'url_changed' });
        },
        detail: differences,
      });
      if (urlChanged) await untilAttemptsEnd(context, id);
      return await serializeSubscription(context, changed);
    },
  });
}

function deleteRoute(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  api.tagged('Subscriptions').delete('/v1/subscriptions/{id}', {
    summary: 'Delete it; its unfinished deliveries end as failed',
    params: schemas.subscriptionParamsSchema,
    responses: { 204: { description: 'The subscription was deleted' } },
    async handle({ params: { id }, caller }) {
      const { url } = await findSubscription(context, id);
      // So the audit trail still names the address when everything else about it is gone.
      const by = { operator: caller, detail: { url } };
      if (!(await deleteSubscription(store, id, clock.now(), by))) missing('subscription');
      logger.info({ subscription_id: id, operator: caller }, 'subscription.deleted');
      const closing = closeSubscription(store, id, clock.now()).catch((err: unknown) => {
        logger.warn({ err, subscription_id: id }, 'subscription.close_interrupted');
      });
      await Promise.race([closing, wait(MAX_DELETE_WAIT_MS, undefined, { ref: false })]);
    },
  });
}

function rotateSecretRoute(api: Api, context: ConsoleContext): void {
  api.tagged('Subscriptions').post('/v1/subscriptions/{id}/rotate-secret', {
    summary: 'Rotate its secret',
    description:
      'Until the overlap ends (24h by default, 0s to 30d) both secrets sign, the new one first. A second rotation within the overlap ends the oldest secret at once; one at the same time gets 409.',
    params: schemas.subscriptionParamsSchema,
    body: schemas.rotationSchema,
    optionalBody: true,
    responses: {
      200: { description: 'The subscription and its new secret', schema: schemas.subscriptionWithSecretSchema },
    },
    problems: ['conflict'],
    async handle({ params: { id }, body: { overlap }, caller }) {
      const { rotated, secret } = await rotateSecret(context, id, { operator: caller, overlapMs: overlap });
      context.logger.info({ subscription_id: id, operator: caller }, 'subscription.secret_rotated');
      return { ...(await serializeSubscription(context, rotated)), secret };
    },
  });
}

function statisticsRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  const subscriptions = api.tagged('Subscriptions');

  subscriptions.get('/v1/subscriptions/{id}/attempts', {
    summary: 'Read the attempts to it in the last 24 hours',
    params: schemas.subscriptionParamsSchema,
    responses: { 200: { description: 'Hour by hour', schema: schemas.addressAttemptsSchema } },
    async handle({ params: { id } }) {
      await findSubscription(context, id);
      return await serializeAddressAttempts(store, id, clock.now());
    },
  });

  subscriptions.get('/v1/subscriptions/{id}/failed-deliveries', {
    summary: 'Count the failed deliveries that a bulk replay would consider',
    params: schemas.subscriptionParamsSchema,
    query: schemas.failedDeliveriesQuerySchema,
    responses: {
      200: { description: 'Failed deliveries that match', schema: schemas.failedDeliveriesSchema },
    },
    async handle({ params: { id }, query }) {
      await findSubscription(context, id);
      const scope = { subscriptionId: id, ...replayScopeOf(query) };
      const { count, isComplete } = await countCovered(store, scope, clock.now());
      return { subscription_id: id, count, is_complete: isComplete };
    },
  });
}

/** Returns the visible fields that changed, each with its value before and after. */
function differences(before: StoredSubscription, after: StoredSubscription): Record<string, unknown> {
  const visible = ['url', 'eventTypes', 'environment', 'description', 'status'] as const;
  const changed = visible.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  const nameOf = (field: string) => (field === 'eventTypes' ? 'event_types' : field);
  return Object.fromEntries(changed.map((field) => [nameOf(field), { from: before[field], to: after[field] }]));
}

/**
 * Throws `AppError` if an address is malformed, visibly private or local, or not encrypted where it must be; `sent` is
 * the field that asks for encryption.
 */
function checkAddress(
  { settings }: ConsoleContext,
  url: string,
  environment: SubscriptionEnvironment,
  sent: 'url' | 'environment' = 'url',
): void {
  const { ALLOWED_PRIVATE_NETWORKS: allowedNetworks, REQUIRE_HTTPS: requireHttps } = settings;
  const refusal = (path: string, message: string) =>
    new AppError('invalid_fields', 'The address is refused.', { fields: [{ path, message }] });
  const check = checkUrl(url, allowedNetworks);
  if (!check.ok) throw refusal('url', check.message);
  const needsHttps = requireHttps === 'always' || (requireHttps === 'production' && environment !== 'sandbox');
  if (needsHttps && check.url.protocol !== 'https:')
    throw refusal(sent, 'Events of this environment go to https addresses only (REQUIRE_HTTPS).');
}
