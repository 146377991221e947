/** When the request of an attempt is signed, and with which secrets. */
import { expect, it } from '@jest/globals';
import { eventRef } from '@posthorn/core';
import { createSecretBox, SealBroken, signatureHeader } from '@posthorn/signing';
import type { BegunAttempt } from '@posthorn/store';
import { createRequestSigner } from './sign-request.ts';

const DAY_S = 86_400;
const CREATED_S = 1_700_000_000;
const box = createSecretBox([Buffer.alloc(32, 1)]);
const event = { id: 'evt_1', body: '{"id":"evt_1"}' };

/** An attempt of a delivery that was made at `CREATED_S`. */
function attempt(secrets: Partial<BegunAttempt>): BegunAttempt {
  return {
    kind: 'attempt',
    attemptNumber: 6,
    event: eventRef({ id: event.id, environment: 'sandbox' }),
    eventType: 'session.approved',
    environment: 'sandbox',
    subscriptionId: 'sub_1',
    createdAtMs: CREATED_S * 1000,
    dueAtMs: (CREATED_S + DAY_S) * 1000,
    isReplay: false,
    url: 'https://example.com/',
    sealedSecret: box.seal('secret', 'sub_1'),
    previousSealedSecret: null,
    previousSecretUntilMs: 0,
    ...secrets,
  };
}

it('is signed with the time of the attempt, not that of the delivery: receivers refuse what is old', () => {
  const { headers } = createRequestSigner(box)('dlv_1', attempt({}), event, (CREATED_S + DAY_S) * 1000 + 999);
  expect(headers['Service-Signature']).toBe(signatureHeader(['secret'], CREATED_S + DAY_S, event.body));
});

it('is signed with both secrets, the new one first, until the previous one ends', () => {
  const untilMs = (CREATED_S + DAY_S) * 1000;
  const previous = { previousSealedSecret: box.seal('previous', 'sub_1'), previousSecretUntilMs: untilMs };
  const sign = createRequestSigner(box);
  const signedAt = (ms: number) => sign('dlv_1', attempt(previous), event, ms).headers['Service-Signature'];
  expect(signedAt(untilMs - 1)).toBe(signatureHeader(['secret', 'previous'], CREATED_S + DAY_S - 1, event.body));
  expect(signedAt(untilMs)).toBe(signatureHeader(['secret'], CREATED_S + DAY_S, event.body));
});

it('is never signed with the secret of another subscription, even if that was opened just before', () => {
  const sign = createRequestSigner(box);
  const { sealedSecret } = attempt({});
  sign('dlv_1', attempt({ sealedSecret }), event, CREATED_S * 1000);
  const ofAnother = attempt({ subscriptionId: 'sub_2', sealedSecret });
  expect(() => sign('dlv_2', ofAnother, event, CREATED_S * 1000)).toThrow(SealBroken);
});
