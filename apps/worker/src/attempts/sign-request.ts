/** Builds the request of an attempt: headers as in specification 2.3, signed with the secrets valid at that moment. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { atMost, knownOrNew } from '@posthorn/core';
import type { SendRequest } from '@posthorn/sender';
import { deliveryHeaders, type SecretBox } from '@posthorn/signing';
import { type BegunAttempt, sealedSecretsAt } from '@posthorn/store';
import { LRUCache } from 'lru-cache';
import type { EventToSend } from './event-bodies.ts';

/** Opened secrets cached as keys: to open one costs a few microseconds, to make a key of it one more. */
const MAX_OPEN_SECRETS = 10_000;

type SignedEvent = Pick<EventToSend, 'id' | 'body'>;
export type RequestSigner = ReturnType<typeof createRequestSigner>;

/** A signer over sealed secrets. While a rotation overlaps, both secrets sign, the new one first (interface 4). */
export function createRequestSigner(secretBox: SecretBox) {
  // The key contains the owner, so the cache never returns a secret that the secret box would refuse to open.
  const opened = new LRUCache<string, KeyObject>(atMost(MAX_OPEN_SECRETS));
  const open = (sealed: string, subscriptionId: string) =>
    knownOrNew(opened, `${subscriptionId} ${sealed}`, () =>
      createSecretKey(secretBox.open(sealed, subscriptionId), 'utf8'),
    );
  return (deliveryId: string, attempt: BegunAttempt, event: SignedEvent, nowMs: number): SendRequest => {
    const { subscriptionId, eventType, url } = attempt;
    const keys = sealedSecretsAt(attempt, nowMs).map((sealed) => open(sealed, subscriptionId));
    const delivery = { id: deliveryId, eventId: event.id, eventType };
    // The same bytes are signed and sent.
    const body = Buffer.from(event.body);
    return { url, body, headers: deliveryHeaders(delivery, body, keys, Math.floor(nowMs / 1000)) };
  };
}
