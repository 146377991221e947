/** A test delivery: an event of its own, for one address (specification 1). */
import {
  AppError,
  deliveryId,
  type Environment,
  eventIdIn,
  eventRef,
  newTestEvent,
  partitionOf,
  type TraceContext,
} from '@posthorn/core';
import { appendAudit } from '../audit.ts';
import { type FanOutContext, makeDeliveries } from '../events/make-deliveries.ts';
import { storeEvent } from '../events/store-event.ts';
import type { StoredSubscription } from '../subscriptions/subscriptions.ts';

/** What an operator asks for. Without an environment: the one that the address is bound to, or the sandbox. */
interface TestRequest {
  environment: Environment | undefined;
  operator: string;
  trace: TraceContext | undefined;
}

/**
 * Stores a `webhook.test` event, its delivery and its job, and returns the delivery's id. A crash in between leaves an
 * interrupted fan-out like any other. Throws `AppError` unless the address is active and bound to the environment.
 */
export async function makeTestDelivery(
  context: FanOutContext,
  { id: subscriptionId, status, environment: boundTo }: StoredSubscription,
  { environment, operator, trace }: TestRequest,
  nowMs: number,
): Promise<string> {
  if (status !== 'active') {
    const next = status === 'paused' ? 'Resume it.' : 'Validate it.';
    throw new AppError('conflict', `Only an active address can be tested; this one is ${status}. ${next}`);
  }
  if (environment !== undefined && boundTo !== 'both' && environment !== boundTo) {
    throw new AppError('invalid_fields', 'This address does not receive events of that environment.', {
      fields: [{ path: 'environment', message: `This address is bound to ${boundTo}` }],
    });
  }
  const made = newTestEvent(environment ?? (boundTo === 'both' ? 'sandbox' : boundTo), nowMs);
  // In the partition of the address: in a Redis Cluster the test needs no other master.
  const { partitions } = context.store;
  const event = { ...made, id: eventIdIn(partitionOf(subscriptionId, partitions), partitions, made.id) };
  const ref = eventRef(event);
  const id = deliveryId(ref, subscriptionId);
  await appendAudit(context.store, { operator, action: 'subscription.tested', subscriptionId, deliveryId: id }, nowMs);
  const stored = { ref, event, acceptedAtMs: nowMs, trace, subscriptionIds: [subscriptionId] };
  await storeEvent(context.store, stored, { isNewId: true });
  await makeDeliveries(context, stored);
  return id;
}
