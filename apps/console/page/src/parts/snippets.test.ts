/** The code that receivers copy verifies signatures. */
import { describe, expect, it } from '@jest/globals';
import { signatureHeader } from '@posthorn/signing';
import { nodeSnippet } from './snippets.ts';

type Verify = (rawBody: Buffer, header: string, secret: string) => boolean;

describe('the Node.js code', () => {
  const body = Buffer.from('{"name":"é"}');
  const nowS = Math.floor(Date.now() / 1000);
  it.each([
    [true, 'a valid signature', signatureHeader(['secret'], nowS, body)],
    [true, 'the older of two signatures', signatureHeader(['new', 'secret'], nowS, body)],
    [false, 'a signature with another secret', signatureHeader(['other'], nowS, body)],
    [false, 'a signature of another body', signatureHeader(['secret'], nowS, '{}')],
    [false, 'a signature older than 300 seconds', signatureHeader(['secret'], nowS - 301, body)],
    [false, 'an empty header', ''],
    [false, 'a header without a time', signatureHeader(['secret'], nowS, body).replace(/^t=\d+,/, '')],
    [false, 'a malformed header', 't=x,v1=zz,=,v1'],
  ])('returns %s for %s', async (verdict, _what, header) => {
    const module = `data:text/javascript,${encodeURIComponent(nodeSnippet)}`;
    const { verify } = (await import(module)) as { verify: Verify };
    expect(verify(body, header, 'secret')).toBe(verdict);
  });
});
