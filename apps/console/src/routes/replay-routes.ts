/** Routes for bulk replays (interface 4). Maintenance in the workers does the replaying. */
import { AppError, type ReplayStatus } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import {
  listOf,
  newReplaySchema,
  rehearsalSchema,
  replayBatchParamsSchema,
  replayBatchSchema,
  replayParamsSchema,
  replaySchema,
  replaysQuerySchema,
  startedReplaySchema,
} from '@posthorn/operator-api';
import {
  afterChange,
  cancelBatch,
  cancelReplay,
  continueReplay,
  listReplays,
  loadBatch,
  loadReplays,
  loadSubscriptions,
  type Store,
  startBatch,
  startReplay,
} from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { missing } from '../missing.ts';
import { notActive } from '../not-active.ts';
import { rehearse } from '../rehearse-replay.ts';
import { loadAddresses, serializeBatch, serializeStartedBatch } from '../replay-batch.ts';
import { replayScopeOf } from '../replay-scope.ts';
import { serializePage, serializeReplay } from '../serialize.ts';
import { actionOf, traced } from '../traces.ts';

export function replayRoutes(api: Api, context: ConsoleContext): void {
  startRoutes(api, context);
  batchRoutes(api, context);
  decisionRoutes(api, context);
}

/** The common part of the routes of one bulk replay that return it, and of those of a batch. */
const ofReplay = {
  params: replayParamsSchema,
  responses: { 200: { description: 'The bulk replay', schema: replaySchema } },
};
const ofBatch = {
  params: replayBatchParamsSchema,
  responses: { 200: { description: 'The batch', schema: replayBatchSchema } },
};

async function findReplay(store: Store, id: string) {
  const [replay = missing('bulk replay')] = await loadReplays(store, [id]);
  return replay;
}

function startRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock, logger } = context;
  const replays = api.tagged('Bulk replays');

  replays.post('/v1/replays', {
    summary: 'Replay every failed delivery of an address in a period',
    description:
      'In the background, once each, oldest first. `from` and `to` limit the time of creation, `failed_from` and `failed_to` that of the failure, all inclusive; without them, there is no limit. `event_type` and `error` select further. With `canary`, the first 5 deliveries of an address have to arrive before its others are made. A delivery is skipped if its event is on its way to the address again, or has arrived there by a replay. `subscription_ids` starts one bulk replay for each address, or none if one of them cannot be replayed to. The response is then a batch.',
    body: newReplaySchema,
    responses: {
      202: { description: 'The bulk replay, or the batch', schema: startedReplaySchema },
    },
    problems: ['not_found', 'conflict'],
    handle: ({ body, caller, request }) =>
      traced(context, actionOf(request, 'replay', false), async (_trace, fields) => {
        const nowMs = clock.now();
        const wanted = { ...replayScopeOf(body), canary: body.canary };
        const { subscription_id: subscriptionId, subscription_ids: subscriptionIds = [] } = body;
        if (subscriptionId === undefined) {
          await loadAddresses(store, subscriptionIds, { onlyActive: true });
          const batch = await startBatch(store, { ...wanted, subscriptionIds }, nowMs, caller);
          logger.info(
            { batch_id: batch.id, addresses: subscriptionIds.length, operator: caller, ...fields },
            'replay_batch.started',
          );
          return await serializeStartedBatch(store, batch);
        }
        const replay = await startReplay(store, { ...wanted, subscriptionId }, nowMs, caller);
        if (replay === 'no_subscription') missing('subscription');
        if (replay === 'not_active') throw new AppError('conflict', `${notActive('The address')}.`);
        const line = { replay_id: replay.id, subscription_id: replay.subscriptionId, deliveries: replay.total };
        logger.info({ ...line, operator: caller, ...fields }, 'replay.started');
        return serializeReplay(replay);
      }),
  });

  replays.post('/v1/replays/rehearse', {
    summary: 'Rehearse a bulk replay: what it would do',
    description:
      'Takes the body of a start and changes nothing: how many deliveries would go to each address, about how long that takes, and what speaks against it. It looks at up to 10,000 failed deliveries, divided among the addresses.',
    body: newReplaySchema,
    responses: { 200: { description: 'What the bulk replay would do', schema: rehearsalSchema } },
    problems: ['not_found'],
    async handle({ body }) {
      const nowMs = clock.now();
      const { subscription_id: subscriptionId, subscription_ids: several = [], canary } = body;
      const addresses =
        subscriptionId === undefined
          ? await loadAddresses(store, several, { onlyActive: false })
          : (await loadSubscriptions(store, [subscriptionId])).map((found) => found ?? missing('subscription'));
      return await rehearse(store, addresses, { ...replayScopeOf(body), canary }, nowMs);
    },
  });

  replays.get('/v1/replays', {
    summary: 'List bulk replays, newest first',
    query: replaysQuerySchema,
    responses: { 200: { description: 'A page of bulk replays', schema: listOf(replaySchema) } },
    async handle({ query: { subscription_id: subscriptionId, batch_id: batchId, limit, cursor, ...unused } }) {
      unused satisfies Record<string, never>;
      const page = await listReplays(store, { subscriptionId, batchId }, { limit, cursor, leaveOutUnreadable: true });
      return await serializePage(context, page, serializeReplay);
    },
  });

  replays.get('/v1/replays/{id}', {
    ...ofReplay,
    summary: 'Read one with its progress',
    async handle({ params: { id } }) {
      return serializeReplay(await findReplay(store, id));
    },
  });
}

function batchRoutes(api: Api, { store, clock, logger }: ConsoleContext): void {
  const replays = api.tagged('Bulk replays');
  const readBatch = async (id: string) =>
    await serializeBatch(store, (await loadBatch(store, id)) ?? missing('batch of bulk replays'));

  replays.get('/v1/replay-batches/{id}', {
    ...ofBatch,
    summary: 'Read a batch: the bulk replays of several addresses with their progress as one',
    async handle({ params: { id } }) {
      return await readBatch(id);
    },
  });

  replays.post('/v1/replay-batches/{id}/cancel', {
    ...ofBatch,
    summary: 'Cancel a batch',
    description: 'Cancels each of its bulk replays that is not over. May be repeated.',
    async handle({ params: { id }, caller }) {
      if (!(await cancelBatch(store, id, clock.now(), caller))) missing('batch of bulk replays');
      logger.info({ batch_id: id, operator: caller }, 'replay_batch.cancelled');
      return await afterChange('The batch is cancelled. The call may be repeated.', readBatch(id));
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
    ...ofReplay,
    summary: 'Cancel it',
    description:
      'It makes no more deliveries. Those that have had no attempt end as failed with the reason `cancelled`, in the background; they can be replayed later. What has been attempted goes on: its retries are part of the delivery.',
    problems: ['conflict'],
    async handle({ params: { id }, caller }) {
      const result = await cancelReplay(store, id, clock.now(), caller);
      if (result.kind === 'gone') missing('bulk replay');
      if (result.kind === 'over') throw new AppError('conflict', over[result.status]);
      logger.info({ replay_id: id, operator: caller }, 'replay.cancelled');
      return serializeReplay(await findReplay(store, id));
    },
  });

  replays.post('/v1/replays/{id}/continue', {
    ...ofReplay,
    summary: 'Continue it after its canary',
    description: 'For one that its canary has halted. One whose canary still waits goes on without the verdict.',
    problems: ['conflict'],
    async handle({ params: { id }, caller }) {
      const result = await continueReplay(store, id, clock.now(), caller);
      if (result === 'gone') missing('bulk replay');
      if (result !== 'continued') throw new AppError('conflict', over[result]);
      logger.info({ replay_id: id, operator: caller }, 'replay.continued');
      return serializeReplay(await findReplay(store, id));
    },
  });
}
