/** Checks whether an address may be sent a test, and makes its test delivery (specification 1). */
import { AppError, type Environment } from '@posthorn/core';
import { makeTestDelivery } from '@posthorn/dispatch';
import type { StoredSubscription } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';

/** Makes a test delivery and returns its id. Throws `AppError` unless the address is active and bound to the environment. */
export async function sendTest(
  context: ConsoleContext,
  subscription: StoredSubscription,
  wanted: Environment | undefined,
  operator: string,
): Promise<string> {
  const { id: subscriptionId, status, environment: boundTo } = subscription;
  if (status !== 'active') {
    throw new AppError('conflict', `Only an active address is sent tests; this one is ${status}.`);
  }
  if (wanted !== undefined && boundTo !== 'both' && wanted !== boundTo) {
    throw new AppError('invalid_fields', 'The test is not possible.', {
      fields: [{ path: 'environment', message: `This address is bound to ${boundTo}` }],
    });
  }
  const environment = wanted ?? (boundTo === 'both' ? 'sandbox' : boundTo);
  return await makeTestDelivery(context, { subscriptionId, environment, operator }, context.clock.now());
}
