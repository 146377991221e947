/** Makes a test delivery: an event of its own, for one address (specification 1). */
import { AppError, deliveryId, type Environment, eventRef, newTestEvent, partitionOf } from '@posthorn/core';
import { appendAudit, confirmFanOut, createDeliveries, type StoredSubscription, storeEvent } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';

/**
 * Stores a `webhook.test` event, its delivery and its job; answers the delivery's id. Left half done by a crash, it is finished like
 * any other event's fan-out. Throws `AppError` unless the address is active and bound to the environment.
 */
export async function makeTestDelivery(
  { store, producer, clock }: ConsoleContext,
  subscription: StoredSubscription,
  environment: Environment | undefined,
  operator: string,
): Promise<string> {
  const { id: subscriptionId, status, environment: boundTo } = subscription;
  if (status !== 'active') {
    throw new AppError('conflict', `Only an active address is sent tests; this one is ${status}.`);
  }
  if (environment !== undefined && boundTo !== 'both' && environment !== boundTo) {
    throw new AppError('invalid_fields', 'The test is not possible.', {
      fields: [{ path: 'environment', message: `This address is bound to ${boundTo}` }],
    });
  }
  const nowMs = clock.now();
  const event = newTestEvent(environment ?? (boundTo === 'both' ? 'sandbox' : boundTo), nowMs);
  const ref = eventRef(event);
  const id = deliveryId(ref, subscriptionId);
  await appendAudit(store, { operator, action: 'subscription.tested', subscriptionId, deliveryId: id }, nowMs);
  const stored = { ref, event, acceptedAtMs: nowMs, subscriptionIds: [subscriptionId] };
  await storeEvent(store, stored, { isNewId: true });
  const [made] = await createDeliveries(store, stored);
  if (made?.state === 'pending') {
    const job = { deliveryId: id, generation: 0, subscriptionId, event: ref };
    await producer.add(partitionOf(subscriptionId, store.partitions), [job]);
  }
  await confirmFanOut(store, ref);
  return id;
}
