/** The operator API's calls on bulk replays (interface 4). The maintenance of the workers does the work. */
import { AppError } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import { newReplaySchema, pageOf, replayParamsSchema, replaySchema, replaysQuerySchema } from '@posthorn/operator-api';
import { listReplays, loadReplays, startReplay } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { serializePage, serializeReplay } from './serialize.ts';

const tag = 'Bulk replays';

export function replayRoutes(api: Api, { store, clock, logger }: ConsoleContext): void {
  api.route(
    {
      method: 'post',
      path: '/v1/replays',
      summary: 'Replay every failed delivery of an address in a time',
      description:
        'In the background, once each, oldest first. The time is that of creation, both ends included; left out, it is all there is. One whose event is on its way to the address again, or has arrived there by a replay, is skipped.',
      tag,
      body: newReplaySchema,
      responses: { 202: { description: 'The bulk replay', schema: replaySchema } },
      problems: [404, 409],
    },
    async ({ body, caller }) => {
      const nowMs = clock.now();
      const wanted = { subscriptionId: body.subscription_id, fromMs: body.from ?? 0, toMs: body.to ?? nowMs };
      const replay = await startReplay(store, wanted, nowMs, { operator: caller });
      if (replay === 'no_subscription') throw new AppError('not_found', 'There is no such subscription.');
      if (replay === 'not_active')
        throw new AppError('conflict', 'The address is not active: resume or validate it first.');
      const line = { replay_id: replay.id, subscription_id: replay.subscriptionId, deliveries: replay.total };
      logger.info({ ...line, operator: caller }, 'replay.started');
      return { status: 202, body: serializeReplay(replay) };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/replays',
      summary: 'List bulk replays, newest first',
      tag,
      query: replaysQuerySchema,
      responses: { 200: { description: 'A page of bulk replays', schema: pageOf(replaySchema) } },
    },
    async ({ query }) => {
      const filter = { subscriptionId: query.subscription_id };
      return {
        status: 200,
        body: await serializePage(await listReplays(store, filter, query.limit, query.cursor), serializeReplay),
      };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/replays/{id}',
      summary: 'Read one and how far it is',
      tag,
      params: replayParamsSchema,
      responses: { 200: { description: 'The bulk replay', schema: replaySchema } },
    },
    async ({ params: { id } }) => {
      const [replay] = await loadReplays(store, [id]);
      if (!replay) throw new AppError('not_found', 'There is no such bulk replay.');
      return { status: 200, body: serializeReplay(replay) };
    },
  );
}
