/** Builds the request of an attempt: headers as in specification 2.3, signed with the secrets valid at that moment. */
import { eventIdOf } from '@posthorn/core';
import type { SendRequest } from '@posthorn/sender';
import { deliveryHeaders, type SecretBox } from '@posthorn/signing';
import { type Begun, sealedSecretsAt } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Opened secrets cached in memory; opening one costs a few microseconds. */
const MAX_OPEN_SECRETS = 10_000;

type BegunAttempt = Extract<Begun, { kind: 'attempt' }>;
export type RequestSigner = ReturnType<typeof createRequestSigner>;

/** A signer over sealed secrets. While a rotation overlaps, both secrets sign, the new one first (interface 4). */
export function createRequestSigner(secretBox: SecretBox) {
  // The key contains the owner, so the cache never returns a secret that the secret box would refuse to open.
  const opened = new LRUCache<string, string, { sealed: string; subscriptionId: string }>({
    max: MAX_OPEN_SECRETS,
    memoMethod: (_key, _stale, { context }) => secretBox.open(context.sealed, context.subscriptionId),
  });
  return (deliveryId: string, attempt: BegunAttempt, body: string, nowMs: number): SendRequest => {
    const { subscriptionId, event, eventType, url } = attempt;
    const secrets = sealedSecretsAt(attempt, nowMs).map((sealed) =>
      opened.memo(`${subscriptionId} ${sealed}`, { context: { sealed, subscriptionId } }),
    );
    const delivery = { id: deliveryId, eventId: eventIdOf(event), eventType };
    return { url, body, headers: deliveryHeaders(delivery, body, secrets, Math.floor(nowMs / 1000)) };
  };
}
