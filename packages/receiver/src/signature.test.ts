/** What the verification of a signature takes and refuses, against the function that signs. */
import { describe, expect, it, jest } from '@jest/globals';
import { newSigningSecret, signatureHeader } from '@posthorn/signing';
import fc from 'fast-check';
import { DEFAULT_TOLERANCE_S, type SignatureCheck, verifySignature } from './index.ts';

const nowS = 1_700_000_000;
const body = '{"id":"evt_1","data":{"name":"Zoë"}}';

type Case = Partial<Omit<SignatureCheck, 'body'>> & { header: string; secret: string; body?: string | Uint8Array };
const isValid = ({ secret, body: text = body, ...check }: Case) =>
  verifySignature({ nowS, ...check, secrets: [secret], body: Uint8Array.from(Buffer.from(text)) });

describe('a signature', () => {
  it('is refused when any byte of the body, the time or the signature differs', async () => {
    const secret = newSigningSecret();
    const header = signatureHeader([secret], nowS, body);
    const bytes = Buffer.from(body);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const tampered = Buffer.from(bytes);
        tampered[at]! ^= flip;
        expect(await isValid({ header, secret, body: tampered, nowS })).toBe(false);
      }),
    );
    expect(await isValid({ header: header.replace(`t=${nowS}`, `t=${nowS + 1}`), secret })).toBe(false);
    expect(await isValid({ header: header.slice(0, -1), secret })).toBe(false);
    expect(await isValid({ header, secret: newSigningSecret() })).toBe(false);
  });
  it('may stand beside signatures of other schemes, and of other secrets', async () => {
    const secret = newSigningSecret();
    const [t, v1] = signatureHeader([secret], nowS, body).split(',') as [string, string];
    for (const header of [`${t},v0=00,${v1}`, `${v1},${t}`, `${t},other,${v1}`, `${t},v1=${'0'.repeat(64)},${v1}`]) {
      expect([header, await isValid({ header, secret })]).toEqual([header, true]);
    }
  });
  it('is made once for each secret, however many signatures the header has', async () => {
    const made = jest.spyOn(crypto.subtle, 'sign');
    const header = `t=${nowS}${`,v1=${'0'.repeat(64)}`.repeat(200)}`;
    const check = { header, secrets: ['whsec_a', 'whsec_b'], body: Buffer.from(body), nowS };
    expect(await verifySignature(check)).toBe(false);
    expect(made).toHaveBeenCalledTimes(2);
    made.mockRestore();
  });
  it('is refused, not an error, where a request has no header: anybody may send one', async () => {
    const check = { secrets: ['whsec_a'], body: Buffer.from(body), nowS };
    // What the headers of Node and of the Fetch standard have in its place.
    for (const header of [undefined, null]) expect(await verifySignature({ ...check, header })).toBe(false);
  });
  it('is refused where its parts are not exactly as they should be', async () => {
    const secret = newSigningSecret();
    const [t, v1] = signatureHeader([secret], nowS, body).split(',') as [string, string];
    const hex = v1.slice(3);
    for (const header of [
      `${t},v0=${hex}`,
      `${t},xv1=${hex}`,
      `x${t},${v1}`,
      `${t},v1=${hex}\n`,
      `${t}\n,${v1}`,
      `${t},v1=${hex}00`,
      `${t},v1=00${hex}`,
      `${t},v1=${hex.toUpperCase()}`,
      `t= ${nowS},${v1}`,
      `t=${nowS}x,${v1}`,
      `t=+${nowS},${v1}`,
      `t=${nowS}.0,${v1}`,
      `t=${'0'.repeat(3)}${nowS},${v1}`,
      `${t},${t},${v1}`,
      v1,
      t,
    ]) {
      expect([header, await isValid({ header, secret })]).toEqual([header, false]);
    }
  });
  it('is made over the time as it stands in the header, which has at most 12 digits', async () => {
    const secret = newSigningSecret();
    const t = 999_999_999_999;
    const check = { header: signatureHeader([secret], t, body), secret, body };
    expect(await isValid({ ...check, nowS: t })).toBe(true);
    const late = { header: signatureHeader([secret], t + 1, body), secret, body };
    expect(await isValid({ ...late, nowS: t + 1 })).toBe(false);
  });
  it('is refused outside the tolerance that the receiver chose', async () => {
    const secret = newSigningSecret();
    const check = { header: signatureHeader([secret], nowS, body), secret, body, toleranceS: 10 };
    const offsets = [10, 11, -10, -11];
    expect(await Promise.all(offsets.map((offS) => isValid({ ...check, nowS: nowS + offS })))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
  it('is refused where the time or the tolerance is no number', async () => {
    const secret = newSigningSecret();
    const check = { header: signatureHeader([secret], nowS, body), secret, body };
    expect(await isValid({ ...check, toleranceS: Number.NaN })).toBe(false);
    expect(await isValid({ ...check, nowS: Number.NaN })).toBe(false);
  });
  it.each([
    ['one secret in place of a list', { secrets: 'whsec_x' }, 'must be a list'],
    ['a text in place of bytes', { body }, 'the bytes of the raw body'],
    ['a parsed body', { body: JSON.parse(body) }, 'the bytes of the raw body'],
  ])('is not checked with %s: no signature would be valid', async (_, wrong, message) => {
    const check = { header: '', secrets: ['whsec_x'], body: Buffer.from(body), ...wrong } as SignatureCheck;
    await expect(verifySignature(check)).rejects.toThrow(message);
  });
  it('is checked at the present time unless told otherwise, over bytes of any kind', async () => {
    const secret = newSigningSecret();
    const header = signatureHeader([secret], Math.floor(Date.now() / 1000), body);
    expect(await verifySignature({ header, secrets: [secret], body: Buffer.from(body) })).toBe(true);
  });
  it('is refused outside the tolerance, which is 300 seconds', async () => {
    const secret = newSigningSecret();
    const header = signatureHeader([secret], nowS, body);
    expect(DEFAULT_TOLERANCE_S).toBe(300);
    expect(await isValid({ header, secret, body, nowS: nowS + 300 })).toBe(true);
    expect(await isValid({ header, secret, body, nowS: nowS + 301 })).toBe(false);
    expect(await isValid({ header, secret, body, nowS: nowS - 301 })).toBe(false);
  });
  it.each(['', 't=1', 'v1=aa', 't=x,v1=00', `t=${nowS},t=${nowS},v1=${'0'.repeat(64)}`, '=,=,='])(
    'the header %j is refused',
    async (header) => {
      expect(await isValid({ header, secret: 'whsec_x' })).toBe(false);
    },
  );
});
