/** Rebuilds the request of a delivery, so that an operator can read it or send it by hand. */
import { AppError, eventBody } from '@posthorn/core';
import type { DeliveryRequest } from '@posthorn/operator-api';
import { USER_AGENT } from '@posthorn/runtime';
import { deliveryHeaders } from '@posthorn/signing';
import { loadEvent, loadSubscriptions, type StoredDelivery, sealedSecretsAt } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { openSecret } from './open-secret.ts';

/**
 * Resolves with the request as attempt number `attempt` sent it, or as an attempt would send it now. It has the present
 * address and secrets: if they have changed since the attempt, the request differs from what was sent. Throws
 * `AppError` `not_found`, or `conflict` if a secret can't be opened.
 */
export async function requestOf(
  { store, secretBox, clock }: ConsoleContext,
  delivery: StoredDelivery,
  attempt: number | undefined,
): Promise<DeliveryRequest> {
  const [stored, [subscription]] = await Promise.all([
    loadEvent(store, delivery.event),
    loadSubscriptions(store, [delivery.subscriptionId]),
  ]);
  if (!stored || !subscription) throw new AppError('not_found', 'Its event or its subscription no longer exists.');
  if (stored.erasedAtMs !== undefined) throw new AppError('not_found', 'Its payload has been erased.');
  const atMs = attempt === undefined ? clock.now() : delivery.attempts[attempt - 1]?.startedAtMs;
  if (atMs === undefined) throw new AppError('not_found', 'There is no such attempt.');
  const secrets = sealedSecretsAt(subscription, atMs).map((sealed) => openSecret(secretBox, sealed, subscription.id));
  const body = eventBody(stored.event);
  const headers = deliveryHeaders(delivery, body, secrets, Math.floor(atMs / 1000));
  return { method: 'POST', url: subscription.url, headers: { ...headers, 'User-Agent': USER_AGENT }, body };
}
