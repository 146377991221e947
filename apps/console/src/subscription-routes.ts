/** The operator API's calls on subscriptions (interface 4). */
import {
  AppError,
  newSubscriptionId,
  newSubscriptionSchema,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_ID,
  SUBSCRIPTION_STATUSES,
  type SubscriptionEnvironment,
  subscriptionPatchSchema,
} from '@posthorn/core';
import { jsonBody, parseFields } from '@posthorn/runtime';
import { checkUrl } from '@posthorn/sender';
import { newSigningSecret } from '@posthorn/signing';
import {
  changeSubscription,
  closeSubscription,
  deleteSubscription,
  listSubscriptions,
  loadSubscriptions,
  newSubscription,
  type StoredSubscription,
  saveSubscription,
} from '@posthorn/store';
import { Router } from 'express';
import { z } from 'zod';
import type { ConsoleContext } from './context.ts';
import { pageFields } from './paging.ts';
import { presentSubscription } from './present.ts';
import { validateSubscription } from './validate-address.ts';

/** Bodies of this API are a few fields. */
const BODY_LIMIT_BYTES = 64 * 1024;
/** A delete answers after this even if the deliveries of a busy address are still being ended; the housekeeper goes on. */
const DELETE_WAIT_MS = 5_000;

const listSchema = z.strictObject({
  status: z.enum(SUBSCRIPTION_STATUSES).optional(),
  environment: z.enum(SUBSCRIPTION_ENVIRONMENTS).optional(),
  ...pageFields,
});

export function subscriptionRoutes(context: ConsoleContext): Router {
  const { store, clock } = context;
  const router = Router();
  const body = jsonBody({ limitBytes: BODY_LIMIT_BYTES });

  router.post('/v1/subscriptions', body, async (request, response) => {
    const fields = parseFields(newSubscriptionSchema, request.body, 'The subscription');
    checkAddress(context, fields.url, fields.environment);
    const id = newSubscriptionId();
    const secret = fields.secret ?? newSigningSecret();
    const { url, environment, event_types: eventTypes, description = '' } = fields;
    const sealedSecret = context.secretBox.seal(secret, id);
    const created = newSubscription({ id, url, eventTypes, environment, description, sealedSecret }, clock.now());
    if (!(await saveSubscription(store, created))) throw new Error(`The new subscription ${id} could not be saved`);
    context.logger.info({ subscription_id: id }, 'subscription.created');
    response.status(201).json({ ...(await presentSubscription(store, created)), secret });
  });

  router.get('/v1/subscriptions', async (request, response) => {
    const { limit, cursor, ...filter } = parseFields(listSchema, request.query, 'The query');
    const page = await listSubscriptions(store, filter, limit, cursor);
    const data = await Promise.all(page.items.map((item) => presentSubscription(store, item)));
    response.json({ data, next_cursor: page.nextCursor });
  });

  router.get('/v1/subscriptions/:id', async (request, response) => {
    const [found] = SUBSCRIPTION_ID.test(request.params.id) ? await loadSubscriptions(store, [request.params.id]) : [];
    response.json(await presentSubscription(store, found ?? missing()));
  });

  router.patch('/v1/subscriptions/:id', body, async (request, response) => {
    const patch = parseFields(subscriptionPatchSchema, request.body, 'The change');
    const newUrl = patch.url !== undefined;
    const changed = await change(context, String(request.params.id), (now) => {
      const environment = patch.environment ?? now.environment;
      if (newUrl || patch.environment !== undefined) checkAddress(context, patch.url ?? now.url, environment);
      const next = {
        ...now,
        url: patch.url ?? now.url,
        eventTypes: patch.event_types ?? now.eventTypes,
        environment,
        description: patch.description ?? now.description,
      };
      // What is known of the old address says nothing about a new one.
      return next.url === now.url
        ? next
        : { ...next, status: 'awaiting_validation', statusReason: null, consecutiveFailures: 0 };
    });
    response.json(await presentSubscription(store, changed));
  });

  router.delete('/v1/subscriptions/:id', async (request, response) => {
    const { id } = request.params;
    if (!SUBSCRIPTION_ID.test(id) || !(await deleteSubscription(store, id))) missing();
    context.logger.info({ subscription_id: id }, 'subscription.deleted');
    const closing = closeSubscription(store, id, clock.now(), context.producer.remove).catch((err: unknown) => {
      context.logger.warn({ err, subscription_id: id }, 'subscription.close_interrupted');
    });
    const timeUp = Promise.withResolvers<void>();
    const timer = setTimeout(timeUp.resolve, DELETE_WAIT_MS);
    await Promise.race([closing, timeUp.promise]);
    clearTimeout(timer);
    response.status(204).end();
  });

  router.post('/v1/subscriptions/:id/validate', async (request, response) => {
    const { id } = request.params;
    const validated = SUBSCRIPTION_ID.test(id) ? await validateSubscription(context, id) : undefined;
    const { status, statusReason } = validated ?? missing();
    context.logger.info({ subscription_id: id, status, reason: statusReason }, 'subscription.validated');
    response.json(await presentSubscription(store, validated!));
  });

  router.post('/v1/subscriptions/:id/pause', async (request, response) => {
    const paused = await change(context, request.params.id, (now) => {
      if (now.status === 'paused') return undefined;
      if (now.status !== 'active')
        throw new AppError('conflict', `Only an active address can be paused; this one is ${now.status}.`);
      return { ...now, status: 'paused', statusReason: 'operator' };
    });
    context.logger.info({ subscription_id: paused.id, reason: 'operator' }, 'subscription.paused');
    response.json(await presentSubscription(store, paused));
  });

  router.post('/v1/subscriptions/:id/resume', async (request, response) => {
    const resume = (now: StoredSubscription): StoredSubscription => {
      if (now.status !== 'paused' && now.status !== 'active') {
        throw new AppError('conflict', `Only a paused address can be resumed; this one is ${now.status}. Validate it.`);
      }
      return { ...now, status: 'active', statusReason: null, consecutiveFailures: 0 };
    };
    const resumed = await change(context, request.params.id, resume);
    context.logger.info({ subscription_id: resumed.id }, 'subscription.resumed');
    response.json(await presentSubscription(store, resumed));
  });

  return router;
}

async function change(
  { store, clock }: ConsoleContext,
  id: string,
  next: (now: StoredSubscription) => StoredSubscription | undefined,
): Promise<StoredSubscription> {
  if (!SUBSCRIPTION_ID.test(id)) missing();
  const stamped = (now: StoredSubscription) => {
    const changed = next(now);
    return changed && { ...changed, updatedAtMs: clock.now() };
  };
  return (await changeSubscription(store, id, stamped)) ?? missing();
}

/** Refuses an address that can be seen to be private, local, malformed or not encrypted where it must be. */
function checkAddress(context: ConsoleContext, url: string, environment: SubscriptionEnvironment): void {
  const check = checkUrl(url, context.probe.allowedNetworks);
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
