/** Routes for the audit trail and the overview. */
import type { Api } from '@posthorn/http';
import { auditEntrySchema, auditQuerySchema, listOf, overviewSchema } from '@posthorn/operator-api';
import { listAudit } from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { createOverview } from '../overview.ts';
import { serializeAudit, serializePage } from '../serialize.ts';

export function insightRoutes(api: Api, context: ConsoleContext): void {
  const { store, clock } = context;

  api.tagged('Audit').get('/v1/audit', {
    summary: 'List the audit trail, newest first',
    description:
      'Entries are kept for RETENTION. Filters can be combined; `from` and `to` are inclusive. A call looks at some thousands of entries at most, so a page may have fewer items than its limit: go on while there is a `next_cursor`.',
    query: auditQuerySchema,
    responses: { 200: { description: 'A page of entries', schema: listOf(auditEntrySchema) } },
    async handle({ query }) {
      const { subscription_id: subscriptionId, operator, actor, action, target, from, to, ...others } = query;
      const { limit, cursor, ...unused } = others;
      unused satisfies Record<string, never>;
      const filter = { subscriptionId, operator, actor, action, target, fromMs: from, toMs: to };
      const page = await listAudit(store, filter, { limit, cursor, leaveOutUnreadable: true }, clock.now());
      return await serializePage(context, page, serializeAudit);
    },
  });

  api.tagged('Overview').get('/v1/overview', {
    summary: 'Read current counts and the attempts of the last hour and day',
    description: 'Read from Redis at most once per second, for all callers.',
    responses: { 200: { description: 'The overview', schema: overviewSchema } },
    handle: createOverview(context),
  });
}
