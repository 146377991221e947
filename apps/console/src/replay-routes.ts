/** Routes for bulk replays (interface 4). Maintenance in the workers does the replaying. */
import { AppError, type ReplayStatus } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { newReplaySchema, pageOf, replayParamsSchema, replaySchema, replaysQuerySchema } from '@posthorn/operator-api';
import { cancelReplay, continueReplay, listReplays, loadReplays, type Store, startReplay } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { missing } from './missing.ts';
import { replayScopeOf } from './replay-scope.ts';
import { serializePage, serializeReplay } from './serialize.ts';

export function replayRoutes(api: Api, context: ConsoleContext): void {
  startRoutes(api, context);
  decisionRoutes(api, context);
}

async function findReplay(store: Store, id: string) {
  const [replay = missing('bulk replay')] = await loadReplays(store, [id]);
  return replay;
}

function startRoutes(api: Api, { store, clock, logger }: ConsoleContext): void {
  const replays = api.tagged('Bulk replays');

  replays.post('/v1/replays', {
    summary: 'Replay every failed delivery of an address in a period',
    description:
      'In the background, once each, oldest first. `from` and `to` limit the time of creation, `failed_from` and `failed_to` that of the failure, all inclusive; without them, there is no limit. `event_type` and `error` select further. With `canary`, the first 5 deliveries have to arrive before the others are made. A delivery is skipped if its event is on its way to the address again, or has arrived there by a replay.',
    body: newReplaySchema,
    responses: { 202: { description: 'The bulk replay', schema: replaySchema } },
    problems: [404, 409],
    async handle({ body, caller }) {
      const nowMs = clock.now();
      const wanted = { ...replayScopeOf(body.subscription_id, body, nowMs), canary: body.canary };
      const replay = await startReplay(store, wanted, nowMs, { operator: caller });
      if (replay === 'no_subscription') missing('subscription');
      if (replay === 'not_active')
        throw new AppError('conflict', 'The address is not active: resume or validate it first.');
      const line = { replay_id: replay.id, subscription_id: replay.subscriptionId, deliveries: replay.total };
      logger.info({ ...line, operator: caller }, 'replay.started');
      return serializeReplay(replay);
    },
  });

  replays.get('/v1/replays', {
    summary: 'List bulk replays, newest first',
    query: replaysQuerySchema,
    responses: { 200: { description: 'A page of bulk replays', schema: pageOf(replaySchema) } },
    async handle({ query: { subscription_id: subscriptionId, limit, cursor } }) {
      return await serializePage(await listReplays(store, { subscriptionId }, { limit, cursor }), serializeReplay);
    },
  });

  replays.get('/v1/replays/{id}', {
    summary: 'Read one with its progress',
    params: replayParamsSchema,
    responses: { 200: { description: 'The bulk replay', schema: replaySchema } },
    async handle({ params: { id } }) {
      return serializeReplay(await findReplay(store, id));
    },
  });
}

/** Why a bulk replay in this status can be neither cancelled nor continued. */
const over: Record<ReplayStatus, string> = {
  running: 'It is running: it waits for no decision.',
  canary: 'It is running: it waits for no decision.',
  halted: 'It is halted already.',
  done: 'It is done, and none of its deliveries waits.',
  failed: 'It ended when its subscription was deleted.',
  cancelled: 'It is cancelled already.',
};

function decisionRoutes(api: Api, { store, clock, logger }: ConsoleContext): void {
  const replays = api.tagged('Bulk replays');

  replays.post('/v1/replays/{id}/cancel', {
    summary: 'Cancel it',
    description:
      'It makes no more deliveries. Those that have had no attempt end as failed with the reason `cancelled`, in the background; they can be replayed later. What has been attempted goes on: its retries are part of the delivery.',
    params: replayParamsSchema,
    responses: { 200: { description: 'The bulk replay', schema: replaySchema } },
    problems: [409],
    async handle({ params: { id }, caller }) {
      const result = await cancelReplay(store, id, clock.now(), { operator: caller });
      if (result.kind === 'gone') missing('bulk replay');
      if (result.kind === 'over') throw new AppError('conflict', over[result.status]);
      logger.info({ replay_id: id, operator: caller }, 'replay.cancelled');
      return serializeReplay(await findReplay(store, id));
    },
  });

  replays.post('/v1/replays/{id}/continue', {
    summary: 'Continue it after its canary',
    description: 'For one that its canary has halted. One whose canary still waits goes on without the verdict.',
    params: replayParamsSchema,
    responses: { 200: { description: 'The bulk replay', schema: replaySchema } },
    problems: [409],
    async handle({ params: { id }, caller }) {
      const result = await continueReplay(store, id, clock.now(), { operator: caller });
      if (result === 'gone') missing('bulk replay');
      if (result !== 'continued') throw new AppError('conflict', over[result]);
      logger.info({ replay_id: id, operator: caller }, 'replay.continued');
      return serializeReplay(await findReplay(store, id));
    },
  });
}
