/** The route that says what became of an event at an address: `GET /v1/explain`. */
import { explain } from '@posthorn/core';
import type { Api } from '@posthorn/http';
import * as schemas from '@posthorn/operator-api';
import { readCase } from '@posthorn/store';
import type { ConsoleContext } from '../context.ts';
import { instant } from '../instant.ts';
import { reasonOf, serializeDelivery } from '../serialize.ts';

export function explainRoute(api: Api, { store, clock }: ConsoleContext): void {
  api.tagged('Events').get('/v1/explain', {
    summary: 'Explain why an event was, or was not, delivered to an address',
    description: 'Also answers for an event or a subscription that is not stored.',
    query: schemas.explainQuerySchema,
    responses: { 200: { description: 'The explanation', schema: schemas.explanationSchema } },
    async handle({ query: { event_id, subscription_id, environment } }): Promise<schemas.Explanation> {
      const facts = await readCase(store, event_id, subscription_id, environment, clock.now());
      const { reason, answer, nextStep, sinceMs, dueAtMs } = explain(facts);
      const { event, subscription, delivery } = facts;
      return {
        event_id,
        subscription_id,
        reason,
        answer,
        next_step: nextStep,
        since: instant(sinceMs),
        due_at: instant(dueAtMs),
        event: event
          ? {
              type: event.type,
              environment: event.environment,
              accepted_at: instant(event.acceptedAtMs),
              trace_id: facts.trace?.traceId ?? null,
            }
          : null,
        subscription: subscription
          ? {
              url: subscription.url,
              description: subscription.description,
              status: subscription.status,
              status_reason: reasonOf(subscription),
            }
          : null,
        delivery: delivery ? serializeDelivery(delivery, store.retentionMs) : null,
      };
    },
  });
}
