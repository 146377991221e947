/** Builds the request of an attempt: headers as in specification 2.3, signed with the secrets valid at that moment. */

import { eventIdOf } from '@posthorn/core';
import type { SendRequest } from '@posthorn/sender';
import { deliveryHeaders, type SecretBox } from '@posthorn/signing';
import { type Begun, sealedSecretsAt } from '@posthorn/store';
import { LRUCache } from 'lru-cache';

/** Opened secrets cached in memory; opening one costs a few microseconds. */
const MAX_OPEN_SECRETS = 10_000;

export type RequestSigner = (
  deliveryId: string,
  attempt: Extract<Begun, { kind: 'attempt' }>,
  body: string,
  nowMs: number,
) => SendRequest;

/** A signer over sealed secrets. While a rotation overlaps, both secrets sign, the new one first (interface 4). */
export function createRequestSigner(secretBox: SecretBox): RequestSigner {
  const opened = new LRUCache<string, string>({ max: MAX_OPEN_SECRETS });
  const open = (sealed: string, subscriptionId: string) => {
    // The key contains the owner, so the cache never returns a secret that the secret box would refuse to open.
    const key = `${subscriptionId} ${sealed}`;
    let secret = opened.get(key);
    if (secret === undefined) {
      secret = secretBox.open(sealed, subscriptionId);
      opened.set(key, secret);
    }
    return secret;
  };
  return (deliveryId, attempt, body, nowMs) => {
    const secrets = sealedSecretsAt(attempt, nowMs).map((sealed) => open(sealed, attempt.subscriptionId));
    const delivery = { id: deliveryId, eventId: eventIdOf(attempt.event), eventType: attempt.eventType };
    return { url: attempt.url, body, headers: deliveryHeaders(delivery, body, secrets, Math.floor(nowMs / 1000)) };
  };
}
