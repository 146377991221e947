/** The live tail of attempts, as server-sent events. */
import type { Api } from '@posthorn/http';
import { type TailedAttempt, tailedAttemptSchema, tailQuerySchema } from '@posthorn/operator-api';
import type { z } from 'zod';
import type { ConsoleContext } from '../context.ts';
import { sendEventStream } from '../event-stream.ts';

const MAX_ITEMS = 200;

export function tailRoutes(api: Api, context: ConsoleContext): void {
  api.tagged('Deliveries').get('/v1/tail', {
    summary: 'Watch attempts live',
    description:
      'Server-sent events: `attempt` with a TailedAttempt; `gap` with `{"dropped": 12}` where attempts were left out (null: nobody knows whether, or how many); `heartbeat` every 2 s. A process writes at most 500 attempts a second, failed ones first, and begins up to 2 s after the first listener came. After a disconnection, send Last-Event-ID: about 10,000 attempts are kept, for a minute after the last listener left. An operator may open 10 streams.',
    query: tailQuerySchema,
    responses: {
      200: { description: 'A stream of attempts', schema: tailedAttemptSchema, type: 'text/event-stream' },
    },
    problems: ['stopping'],
    async handle({ query, ...call }) {
      await sendEventStream(context, context.tail, 'attempt', {
        ...call,
        maxItems: MAX_ITEMS,
        select: async (items) =>
          items.flatMap(({ id, entry }) => (entry && matches(entry.attempt, query) ? { id, json: entry.json } : [])),
      });
    },
  });
}

function matches(attempt: TailedAttempt, query: z.output<typeof tailQuerySchema>): boolean {
  const { failed, subscription_id: subscriptionId, event_type: eventType, environment, ...unused } = query;
  unused satisfies Record<string, never>;
  return (
    (!failed || attempt.outcome === 'failed') &&
    (subscriptionId === undefined || attempt.subscription_id === subscriptionId) &&
    (eventType === undefined || attempt.event_type === eventType) &&
    (environment === undefined || attempt.environment === environment)
  );
}
