/** Validates an address when an operator requests it (specification 1 and 3.2): send → decide. */
import { type AddressFinding, AppError, errorOfStatus, nextAddressState, type Validation } from '@posthorn/core';
import { errorOfOutcome, type SendResult } from '@posthorn/sender';
import type { StoredSubscription } from '@posthorn/store';
import { change, findSubscription } from './change-subscription.ts';
import type { ConsoleContext } from './context.ts';

/** Validations in flight in one process: each takes a connection for up to `ATTEMPT_TIMEOUT`. */
const MAX_VALIDATIONS = 100;
let validationsInFlight = 0;

/**
 * Checks the address of a subscription and stores its new state (core's address-state.ts) with what came back. Throws
 * `AppError`: `not_found`, `conflict` if the subscription changed meanwhile, `too_many_requests`.
 */
export async function validateSubscription(
  context: ConsoleContext,
  id: string,
  operator: string,
): Promise<StoredSubscription> {
  const { url } = await findSubscription(context, id);
  const result = await examine(context, url);
  const finding = findingOf(result);
  const lastValidation = validationOf(result, finding, context.clock.now());
  return await change(context, id, {
    operator,
    action: 'subscription.validated',
    next(now) {
      if (now.url !== url) throw new AppError('conflict', 'The url changed during the validation. Validate again.');
      // A copy, so that each validation has its audit entry, even one that changes nothing.
      return { ...nextAddressState(now, finding), lastValidation };
    },
    detail: (_before, { status, statusReason }) => ({ status, reason: statusReason }),
  });
}

/**
 * Sends one POST with body `{}` and no `Service-*` header. It has a connection of its own, so that the name is resolved
 * and all its IPs are checked.
 */
async function examine({ validationSender, settings }: ConsoleContext, url: string): Promise<SendResult> {
  if (validationsInFlight >= MAX_VALIDATIONS) {
    throw new AppError('too_many_requests', `${MAX_VALIDATIONS} validations are in flight. Try again in a moment.`, {
      retryAfterS: 1,
    });
  }
  validationsInFlight += 1;
  try {
    return await validationSender.send({
      url,
      headers: { 'content-type': 'application/json' },
      body: '{}',
      excerptBytes: settings.RESPONSE_EXCERPT_BYTES,
    });
  } finally {
    validationsInFlight -= 1;
  }
}

function findingOf(result: SendResult): AddressFinding {
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
      return { kind: 'unreachable' };
    default:
      return result satisfies never;
  }
}

function validationOf(result: SendResult, { kind: outcome }: AddressFinding, atMs: number): Validation {
  return {
    atMs,
    outcome,
    statusCode: result.kind === 'responded' ? result.statusCode : null,
    error: result.kind === 'aborted' || result.kind === 'not_admitted' ? null : errorOfOutcome(result),
    ...(result.cameBack?.() ?? { response: null, connection: null }),
  };
}
