/** What the routes of one subscription share: how they find it, change it and document it. */
import type { AuditEntry } from '@posthorn/core';
import { subscriptionParamsSchema, subscriptionSchema } from '@posthorn/operator-api';
import { changeSubscription, loadSubscriptions, type StoredSubscription } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { missing } from './missing.ts';

/** The common part of the routes under `/v1/subscriptions/{id}` that return the subscription. */
export const subscriptionRoute = {
  params: subscriptionParamsSchema,
  responses: { 200: { description: 'The subscription', schema: subscriptionSchema } },
};

/** Resolves with a subscription. Throws `AppError` `not_found`. */
export async function findSubscription({ store }: ConsoleContext, id: string): Promise<StoredSubscription> {
  const [subscription = missing('subscription')] = await loadSubscriptions(store, [id]);
  return subscription;
}

interface Change extends Pick<AuditEntry, 'operator' | 'action'> {
  /** Returns the changed subscription. If it returns its argument, nothing is written. */
  next(now: StoredSubscription): StoredSubscription;
  /** Returns the `detail` of the audit entry. */
  detail(before: StoredSubscription, after: StoredSubscription): Record<string, unknown>;
}

/**
 * Changes a subscription together with its audit entry. Resolves with the subscription as it is stored now. Throws
 * `AppError`: `not_found`; `conflict` if concurrent changes keep winning; or whatever `next` throws.
 */
export async function change(
  { store, clock }: Pick<ConsoleContext, 'store' | 'clock'>,
  id: string,
  { operator, action, next, detail }: Change,
): Promise<StoredSubscription> {
  const stamped = (now: StoredSubscription) => {
    const changed = next(now);
    return changed === now ? undefined : { ...changed, updatedAtMs: clock.now() };
  };
  const audit = (...versions: Parameters<Change['detail']>) => ({ operator, action, detail: detail(...versions) });
  return (await changeSubscription(store, id, stamped, audit)) ?? missing('subscription');
}
