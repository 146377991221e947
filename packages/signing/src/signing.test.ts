/** Signatures against a client that someone else wrote, and the sealing of secrets. */
import { createCipheriv, randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import Stripe from 'stripe';
import {
  createSecretBox,
  deliveryHeaders,
  newSigningSecret,
  parseEncryptionKeys,
  SealBroken,
  signatureHeader,
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
  it('during a rotation both secrets verify, the new one first', () => {
    const [fresh, old] = [newSigningSecret(), newSigningSecret()];
    const t = Math.floor(Date.now() / 1000);
    const header = signatureHeader([fresh, old], t, body);
    for (const secret of [fresh, old]) {
      Stripe.webhooks.constructEvent(body, header, secret);
    }
    expect(header.split(',')[1]).toBe(signatureHeader([fresh], t, body).split(',')[1]);
  });
  it('is what the interface says, to the byte: HMAC-SHA256 in hex over the time, a dot and the body', () => {
    // Made with: printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test
    expect(signatureHeader(['whsec_test'], nowS, '{"id":"evt_1"}')).toBe(
      't=1700000000,v1=c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925',
    );
  });
  it('stands in the headers of the specification', () => {
    const headers = deliveryHeaders({ id: 'dlv_1', eventId: 'evt_1', eventType: 'session.created' }, body, ['s'], nowS);
    expect(headers).toEqual({
      'Content-Type': 'application/json',
      'Service-Signature': signatureHeader(['s'], nowS, body),
      'Service-Event': 'session.created',
      'Service-Event-Id': 'evt_1',
      'Service-Delivery-Id': 'dlv_1',
    });
  });
});

describe('a signing secret', () => {
  it('is whsec_ and 32 random bytes in base64url', () => {
    expect(newSigningSecret()).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    expect(newSigningSecret()).not.toBe(newSigningSecret());
  });
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
    const otherEnd = sealed.at(-2) === 'A' ? 'BA' : 'AA';
    expect(() => box.open(sealed.slice(0, -2) + otherEnd, 'sub_1')).toThrow(SealBroken);
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
  it('opens what was sealed before: AES-256-GCM, nonce of 12 bytes, tag of 16, text', () => {
    const key = Buffer.alloc(32, 7);
    const nonce = Buffer.alloc(12, 1);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from('sub_1'));
    const text = Buffer.concat([cipher.update('whsec_Zoë', 'utf8'), cipher.final()]);
    const sealed = (tagBytes: number) =>
      `v1.${Buffer.concat([nonce, cipher.getAuthTag().subarray(0, tagBytes), text]).toString('base64url')}`;
    expect(createSecretBox([key]).open(sealed(16), 'sub_1')).toBe('whsec_Zoë');
    expect(() => createSecretBox([key]).open(sealed(15), 'sub_1')).toThrow(SealBroken);
  });
  it('opens nothing with a shorter tag, which would be easier to forge', () => {
    const key = Buffer.alloc(32, 7);
    const nonce = Buffer.alloc(12, 1);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from('sub_1'));
    cipher.final();
    for (const tagBytes of [4, 8, 12, 15]) {
      const sealed = Buffer.concat([nonce, cipher.getAuthTag().subarray(0, tagBytes)]).toString('base64url');
      expect(() => createSecretBox([key]).open(`v1.${sealed}`, 'sub_1')).toThrow(SealBroken);
    }
  });
  it('seals in that form', () => {
    const sealed = box.seal('whsec_a', 'sub_1');
    expect(sealed).toMatch(/^v1\.[A-Za-z0-9_-]+$/);
    expect(Buffer.from(sealed.slice(3), 'base64url')).toHaveLength(12 + 16 + 'whsec_a'.length);
    expect(() => box.open(sealed.replace('v1.', 'v2.'), 'sub_1')).toThrow(SealBroken);
    expect(() => box.open(sealed.replace('v1.', ''), 'sub_1')).toThrow(SealBroken);
  });
  it('says whose secret it cannot open and what may be wrong, and nothing of secret, key or text', () => {
    const error = new SealBroken('sub_1');
    expect(error.name).toBe('SealBroken');
    expect(error.message).toBe(
      'No key in SECRET_ENCRYPTION_KEY opens the secret of sub_1. Was it sealed with another key?',
    );
  });
  it('takes keys of exactly 32 bytes in base64', () => {
    const key = Buffer.alloc(32).toString('base64');
    expect(parseEncryptionKeys(key)).toEqual([Buffer.alloc(32)]);
    expect(parseEncryptionKeys(`${key}, ${key}`)).toHaveLength(2);
    expect(parseEncryptionKeys(Buffer.alloc(32, 0xff).toString('base64url'))).toEqual([Buffer.alloc(32, 0xff)]);
    for (const bad of [
      '',
      'short',
      Buffer.alloc(31).toString('base64'),
      Buffer.alloc(33).toString('base64'),
      `${'A'.repeat(43)}!`,
      `${key},`,
      `${key},short`,
      `!${'A'.repeat(43)}`,
      `${'A'.repeat(43)}==`,
      `=${'A'.repeat(43)}`,
      `${'A'.repeat(20)} ${'A'.repeat(23)}`,
    ]) {
      expect(parseEncryptionKeys(bad)).toBeUndefined();
    }
  });
});
