/** The operator API's calls that look at what happened and how things are: the audit trail and the overview. */
import type { Api } from '@posthorn/http';
import { auditEntrySchema, auditQuerySchema, overviewSchema, pageOf } from '@posthorn/operator-api';
import { listAudit } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { createOverview } from './overview.ts';
import { serializeAudit, serializePage } from './serialize.ts';

export function insightRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;
  const overview = createOverview(context);

  api.route(
    {
      method: 'get',
      path: '/v1/audit',
      summary: 'Who did what, when, newest first',
      description: 'Kept as long as RETENTION.',
      tag: 'Audit',
      query: auditQuerySchema,
      responses: { 200: { description: 'A page of entries', schema: pageOf(auditEntrySchema) } },
    },
    async ({ query }) => {
      const filter = {
        subscriptionId: query.subscription_id,
        operator: query.operator,
        action: query.action,
        fromMs: query.from,
        toMs: query.to,
      };
      const page = await listAudit(store, filter, query.limit, query.cursor, clock.now());
      return { status: 200, body: await serializePage(page, serializeAudit) };
    },
  );

  api.route(
    {
      method: 'get',
      path: '/v1/overview',
      summary: 'How things are now, and how attempts went over the last hour and day',
      description: 'Read from Redis at most once a second, however many ask.',
      tag: 'Overview',
      responses: { 200: { description: 'The overview', schema: overviewSchema } },
    },
    async () => ({ status: 200, body: await overview() }),
  );
}
