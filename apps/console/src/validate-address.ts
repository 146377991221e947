/** Validates an address as the operator asks for it (specification 1 and 3.2): probe → decide. */
import { AppError, errorOfStatus, type StatusReason, type SubscriptionStatus } from '@posthorn/core';
import type { SendResult } from '@posthorn/sender';
import { changeSubscription, loadSubscriptions, type StoredSubscription } from '@posthorn/store';
import type { ConsoleContext } from './context.ts';

/** Validations in flight in one process: each takes a connection for up to `ATTEMPT_TIMEOUT`. */
const MAX_VALIDATIONS = 100;
const validationsInFlight = new WeakMap<ConsoleContext, number>();

/** What a validation found. */
type Finding = { kind: 'acceptable' } | { kind: 'refused' | 'unreachable'; reason: StatusReason };

/**
 * Checks the address of a subscription and stores what was found. An acceptable address becomes active (one that was paused
 * stays paused), a private, local or redirecting one is refused, one that can't be reached stays as it was and says so.
 * Answers undefined where there is no such subscription.
 */
export async function validateSubscription(
  context: ConsoleContext,
  id: string,
  operator: string,
): Promise<StoredSubscription | undefined> {
  const [subscription] = await loadSubscriptions(context.store, [id]);
  if (!subscription) return undefined;
  const finding = await examine(context, subscription.url);
  const apply = (now: StoredSubscription): StoredSubscription => {
    // The address was changed while it was examined: what was found is about another one.
    if (now.url !== subscription.url)
      throw new AppError('conflict', 'The url changed during the validation. Validate again.');
    return { ...now, ...consequence(now.status, finding), updatedAtMs: context.clock.now() };
  };
  return await changeSubscription(context.store, id, apply, (_before, { status, statusReason }) => ({
    operator,
    action: 'subscription.validated',
    detail: { status, reason: statusReason },
  }));
}

/** One POST with body `{}` and no `Service-*` header, over a connection of its own, so that the name is resolved and all its IPs are checked. */
async function examine(context: ConsoleContext, url: string): Promise<Finding> {
  const inFlight = validationsInFlight.get(context) ?? 0;
  if (inFlight >= MAX_VALIDATIONS) {
    throw new AppError('too_many_requests', `${MAX_VALIDATIONS} validations are in flight. Try again in a moment.`, {
      retryAfterS: 1,
    });
  }
  validationsInFlight.set(context, inFlight + 1);
  try {
    return findingOf(await context.probe.send({ url, headers: { 'content-type': 'application/json' }, body: '{}' }));
  } finally {
    validationsInFlight.set(context, validationsInFlight.get(context)! - 1);
  }
}

function findingOf(result: SendResult): Finding {
  switch (result.kind) {
    case 'responded':
      return errorOfStatus(result.statusCode) === 'redirect'
        ? { kind: 'refused', reason: 'redirect' }
        : { kind: 'acceptable' };
    case 'address_blocked':
      return { kind: 'refused', reason: result.reason };
    case 'timed_out':
    case 'connection_failed':
    case 'aborted':
    case 'not_admitted':
      return { kind: 'unreachable', reason: 'unreachable' };
    default:
      return result satisfies never;
  }
}

function consequence(status: SubscriptionStatus, finding: Finding): Partial<StoredSubscription> {
  switch (finding.kind) {
    case 'acceptable':
      return status === 'paused' ? { status } : { status: 'active', statusReason: null, takesEvents: true };
    case 'refused':
      return { status: 'refused', statusReason: finding.reason };
    case 'unreachable':
      return { status, statusReason: finding.reason };
    default:
      return finding satisfies never;
  }
}
