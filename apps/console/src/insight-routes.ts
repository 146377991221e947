/** Routes for the audit trail and the overview. */
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
      summary: 'List the audit trail, newest first',
      description: 'Entries are kept for RETENTION.',
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
      summary: 'Read current counts and the attempts of the last hour and day',
      description: 'Read from Redis at most once per second, for all callers.',
      tag: 'Overview',
      responses: { 200: { description: 'The overview', schema: overviewSchema } },
    },
    async () => ({ status: 200, body: await overview() }),
  );
}
