/** A test delivery: an event of its own, for one address (specification 1). */
import { deliveryId, type Environment, eventRef, newTestEvent } from '@posthorn/core';
import { appendAudit, storeEvent } from '@posthorn/store';
import type { DispatchContext } from './context.ts';
import { makeDeliveries } from './make-deliveries.ts';

/**
 * Stores a `webhook.test` event, its delivery and its job, and returns the delivery's id. A crash in between leaves an interrupted
 * fan-out like any other. Whether the address may get a test is for the caller to check.
 */
export async function makeTestDelivery(
  context: DispatchContext,
  test: { subscriptionId: string; environment: Environment; operator: string },
  nowMs: number,
): Promise<string> {
  const { subscriptionId, environment, operator } = test;
  const event = newTestEvent(environment, nowMs);
  const ref = eventRef(event);
  const id = deliveryId(ref, subscriptionId);
  const audit = { operator, action: 'subscription.tested', subscriptionId, deliveryId: id } as const;
  await appendAudit(context.store, audit, nowMs);
  const stored = { ref, event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  await storeEvent(context.store, stored, { isNewId: true });
  await makeDeliveries(context, stored);
  return id;
}
