/** The code that receivers copy does what it says. */
import { describe, expect, it } from '@jest/globals';
import { signatureHeader } from '@posthorn/signing';
import { nodeSnippet } from './snippets.ts';

type Verify = (rawBody: Buffer, header: string, secret: string) => boolean;

describe('the Node.js code', () => {
  const body = Buffer.from('{"name":"é"}');
  const nowS = Math.floor(Date.now() / 1000);
  it.each([
    ['a signature', signatureHeader(['secret'], nowS, body), true],
    ['the older of two', signatureHeader(['new', 'secret'], nowS, body), true],
    ['another secret', signatureHeader(['other'], nowS, body), false],
    ['another body', signatureHeader(['secret'], nowS, '{}'), false],
    ['an old one', signatureHeader(['secret'], nowS - 301, body), false],
    ['nothing', '', false],
    ['no time', signatureHeader(['secret'], nowS, body).replace(/^t=\d+,/, ''), false],
    ['nonsense', 't=x,v1=zz,=,v1', false],
  ])('accepts a valid signature only: %s', async (_what, header, verdict) => {
    const module = `data:text/javascript,${encodeURIComponent(nodeSnippet)}`;
    const { verify } = (await import(module)) as { verify: Verify };
    expect(verify(body, header, 'secret')).toBe(verdict);
  });
});
