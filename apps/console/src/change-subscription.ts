/** What the routes of one subscription share: its parameters, and how they find, change and answer with it. */
import { AppError, type AuditEntry } from '@posthorn/core';
import { subscriptionParamsSchema, subscriptionSchema } from '@posthorn/operator-api';
import { changeSubscription, loadSubscriptions, type StoredSubscription } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { serializeSubscription } from './serialize.ts';

/** The common part of every route under `/v1/subscriptions/{id}`. */
export const ofSubscription = { tag: 'Subscriptions', params: subscriptionParamsSchema } as const;
export const returnsSubscription = { 200: { description: 'The subscription', schema: subscriptionSchema } };

export function serialize({ store, clock }: ConsoleContext, subscription: StoredSubscription) {
  return serializeSubscription(store, subscription, clock.now());
}

/** Throws `AppError` `not_found` where there is no such subscription. */
export async function findSubscription({ store }: ConsoleContext, id: string): Promise<StoredSubscription> {
  const [found] = await loadSubscriptions(store, [id]);
  return found ?? missing();
}

/**
 * Changes a subscription together with its audit entry, and returns it as it is stored now. Where `next` returns what it was given,
 * nothing is written. Throws `AppError`: `not_found`, `conflict` if it keeps changing meanwhile, and what `next` throws.
 */
export async function change(
  { store, clock }: ConsoleContext,
  id: string,
  next: (now: StoredSubscription) => StoredSubscription,
  audit: (before: StoredSubscription, after: StoredSubscription) => AuditEntry,
): Promise<StoredSubscription> {
  const stamped = (now: StoredSubscription) => {
    const changed = next(now);
    return changed === now ? undefined : { ...changed, updatedAtMs: clock.now() };
  };
  return (await changeSubscription(store, id, stamped, audit)) ?? missing();
}

export function missing(): never {
  throw new AppError('not_found', 'There is no such subscription.');
}
