/** Routes for bulk replays (interface 4). Maintenance in the workers does the replaying. */
import { AppError } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { newReplaySchema, pageOf, replayParamsSchema, replaySchema, replaysQuerySchema } from '@posthorn/operator-api';
import { listReplays, loadReplays, startReplay } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { missing } from './missing.ts';
import { serializePage, serializeReplay } from './serialize.ts';

export function replayRoutes(api: Api, { store, clock, logger }: ConsoleContext): void {
  const replays = api.tagged('Bulk replays');

  replays.post('/v1/replays', {
    summary: 'Replay every failed delivery of an address in a period',
    description:
      'In the background, once each, oldest first. `from` and `to` limit the time of creation, inclusive; without them, there is no limit. A delivery is skipped if its event is on its way to the address again, or has arrived there by a replay.',
    body: newReplaySchema,
    responses: { 202: { description: 'The bulk replay', schema: replaySchema } },
    problems: [404, 409],
    async handle({ body, caller }) {
      const nowMs = clock.now();
      const wanted = { subscriptionId: body.subscription_id, fromMs: body.from ?? 0, toMs: body.to ?? nowMs };
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
      const [replay = missing('bulk replay')] = await loadReplays(store, [id]);
      return serializeReplay(replay);
    },
  });
}
