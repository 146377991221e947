/** Signatures against a client that someone else wrote, and the sealing of secrets. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import Stripe from 'stripe';
import {
  createSecretBox,
  newSigningSecret,
  parseEncryptionKeys,
  SealBroken,
  signatureHeader,
  verifySignature,
} from './index.ts';

const nowS = 1_700_000_000;
const body = '{"id":"evt_1","data":{"name":"Zoë"}}';

describe('signature', () => {
  it("is accepted by the stripe package's verification, which reads the same scheme", () => {
    const secret = newSigningSecret();
    const t = Math.floor(Date.now() / 1000);
    const event = Stripe.webhooks.constructEvent(body, signatureHeader([secret], t, body), secret);
    expect(event.id).toBe('evt_1');
    expect(() => Stripe.webhooks.constructEvent(`${body} `, signatureHeader([secret], t, body), secret)).toThrow();
  });
  it('during a rotation both secrets verify, by stripe and by us, the new one first', () => {
    const [fresh, old] = [newSigningSecret(), newSigningSecret()];
    const t = Math.floor(Date.now() / 1000);
    const header = signatureHeader([fresh, old], t, body);
    for (const secret of [fresh, old]) {
      expect(verifySignature({ header, secret, body, nowS: t })).toBe(true);
      Stripe.webhooks.constructEvent(body, header, secret);
    }
    expect(header.split(',')[1]).toBe(signatureHeader([fresh], t, body).split(',')[1]);
  });
  it('is refused when any byte of the body, the time or the signature differs', () => {
    const secret = newSigningSecret();
    const header = signatureHeader([secret], nowS, body);
    const bytes = Buffer.from(body);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const tampered = Buffer.from(bytes);
        tampered[at]! ^= flip;
        expect(verifySignature({ header, secret, body: tampered, nowS })).toBe(false);
      }),
    );
    expect(verifySignature({ header: header.replace(`t=${nowS}`, `t=${nowS + 1}`), secret, body, nowS })).toBe(false);
    expect(verifySignature({ header: header.slice(0, -1), secret, body, nowS })).toBe(false);
    expect(verifySignature({ header, secret: newSigningSecret(), body, nowS })).toBe(false);
  });
  it('is refused outside the tolerance, which is 300 seconds', () => {
    const secret = newSigningSecret();
    const header = signatureHeader([secret], nowS, body);
    expect(verifySignature({ header, secret, body, nowS: nowS + 300 })).toBe(true);
    expect(verifySignature({ header, secret, body, nowS: nowS + 301 })).toBe(false);
    expect(verifySignature({ header, secret, body, nowS: nowS - 301 })).toBe(false);
  });
  it.each(['', 't=1', 'v1=aa', 't=x,v1=00', `t=${nowS},t=${nowS},v1=${'0'.repeat(64)}`, '=,=,='])(
    'the header %j is refused',
    (header) => {
      expect(verifySignature({ header, secret: 'whsec_x', body, nowS })).toBe(false);
    },
  );
});

describe('secret box', () => {
  const box = createSecretBox([randomBytes(32)]);
  it('gives back what was sealed, for the same owner alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (secret) => {
        const sealed = box.seal(secret, 'sub_1');
        expect(box.open(sealed, 'sub_1')).toBe(secret);
        expect(() => box.open(sealed, 'sub_2')).toThrow(SealBroken);
      }),
    );
  });
  it('never seals the same way twice, and opens nothing sealed with another key or tampered with', () => {
    const sealed = box.seal('whsec_a', 'sub_1');
    expect(box.seal('whsec_a', 'sub_1')).not.toBe(sealed);
    expect(() => createSecretBox([randomBytes(32)]).open(sealed, 'sub_1')).toThrow(SealBroken);
    expect(() => box.open(`${sealed.slice(0, -2)}AA`, 'sub_1')).toThrow(SealBroken);
    expect(() => box.open('', 'sub_1')).toThrow(SealBroken);
  });
  it('with several keys the first seals and each opens, so that a key can be replaced while running', () => {
    const [older, newer] = [randomBytes(32), randomBytes(32)];
    const sealed = createSecretBox([older]).seal('whsec_a', 'sub_1');
    const rotating = createSecretBox([newer, older]);
    expect(rotating.open(sealed, 'sub_1')).toBe('whsec_a');
    expect(() => rotating.open(sealed, 'sub_2')).toThrow(SealBroken);
    const resealed = rotating.reseal(sealed, 'sub_1')!;
    expect(createSecretBox([newer]).open(resealed, 'sub_1')).toBe('whsec_a');
    expect(() => createSecretBox([older]).open(resealed, 'sub_1')).toThrow(SealBroken);
    expect(rotating.reseal(resealed, 'sub_1')).toBeUndefined();
    expect(() => rotating.reseal(resealed, 'sub_2')).toThrow(SealBroken);
  });
  it('takes keys of exactly 32 bytes in base64', () => {
    const key = Buffer.alloc(32).toString('base64');
    expect(parseEncryptionKeys(key)).toEqual([Buffer.alloc(32)]);
    expect(parseEncryptionKeys(`${key}, ${key}`)).toHaveLength(2);
    for (const bad of [
      '',
      'short',
      Buffer.alloc(31).toString('base64'),
      Buffer.alloc(33).toString('base64'),
      `${'A'.repeat(43)}!`,
      `${key},`,
      `${key},short`,
    ]) {
      expect(parseEncryptionKeys(bad)).toBeUndefined();
    }
  });
});
