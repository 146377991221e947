/** The signature doctor, case by case. */
import { describe, expect, it } from '@jest/globals';
import { verifySignature } from '@posthorn/receiver';
import fc from 'fast-check';
import { diagnoseSignature, newSigningSecret, signatureHeader } from './index.ts';

const nowS = 1_700_000_000;
const [secret, previousSecret] = [newSigningSecret(), newSigningSecret()];
const body = '{"id":"evt_1","data":{"name":"Zoë","url":"https://x/y","score":0.10,"list":[1,2]}}';
const header = signatureHeader([secret], nowS, body);
const seen = { header, body, secret, sent: [] };
const kinds = (change: Partial<Parameters<typeof diagnoseSignature>[0]>) =>
  diagnoseSignature({ ...seen, ...change }).findings.map(({ kind }) => kind);

describe('the diagnosis of a signature', () => {
  it('is correct where body, secret and time fit, and says which secret signed when', () => {
    expect(diagnoseSignature({ ...seen, receivedAtS: nowS + 2 })).toEqual({
      correct: true,
      secret: 'current',
      signedAtS: nowS,
      clockOffS: 2,
      difference: null,
      findings: [],
    });
  });
  it('takes the header as it is copied: with its name, in quotes, with spaces around it', () => {
    for (const copied of [
      `Service-Signature: ${header}`,
      `"service-signature": "${header}",`,
      `'service-signature': '${header}',`,
      `${header};`,
      `service-signature:${header}`,
      `"${header}"`,
      ` '${header}'\n`,
    ])
      expect([copied, kinds({ header: copied })]).toEqual([copied, []]);
  });
  it.each([
    ['trailing_newline', `${body}\n`],
    ['trailing_newline', `${body}\r\n`],
    ['surrounding_space', ` ${body}`],
    ['byte_order_mark', `\uFEFF${body}`],
    ['quoted_body', JSON.stringify(body)],
  ] as const)('finds %s without the event: %j', (kind, received) => {
    const found = diagnoseSignature({ ...seen, body: received });
    expect(found).toMatchObject({ correct: false, secret: 'current', findings: [{ kind }] });
    expect(found.difference).toMatchObject({ at: expect.any(Number) });
  });
  it('finds changed line endings', () => {
    const lines = '{\n"id":"evt_1"\n}';
    const signed = signatureHeader([secret], nowS, lines);
    expect(kinds({ header: signed, body: lines.replaceAll('\n', '\r\n') })).toEqual(['line_endings']);
  });
  it('finds a body that was serialized again: without the event if Posthorn writes it as JavaScript does, otherwise with it', () => {
    const plain = '{"id":"evt_1","data":{"name":"Zoë","url":"https://x/y"}}';
    const signed = signatureHeader([secret], nowS, plain);
    const python = '{"id": "evt_1", "data": {"name": "Zo\\u00eb", "url": "https:\\/\\/x\\/y"}}';
    expect(kinds({ header: signed, body: python })).toEqual(['reserialized_body']);
    expect(kinds({ header: signed, body: JSON.stringify(JSON.parse(plain), null, 2) })).toEqual(['reserialized_body']);
    // The digits of 0.10 are lost, and only the event has them.
    const again = JSON.stringify(JSON.parse(body));
    expect(kinds({ body: again })).toEqual(['unknown_signature']);
    expect(diagnoseSignature({ ...seen, body: again, sent: ['{}', body] })).toMatchObject({
      findings: [{ kind: 'reserialized_body' }],
      difference: { at: body.indexOf('0,"list"'), sent: expect.stringContaining('0.10'), received: expect.any(String) },
    });
    const sorted = '{"data":{"list":[1,2],"name":"Zoë","score":0.1,"url":"https://x/y"},"id":"evt_1"}';
    expect(kinds({ body: sorted, sent: [body] })).toEqual(['reserialized_body']);
  });
  it('tells a body that was cut off from one with other content, and from a header that does not fit', () => {
    expect(kinds({ body: body.slice(0, 40), sent: [body] })).toEqual(['truncated_body']);
    expect(kinds({ body: '', sent: [body] })).toEqual(['truncated_body']);
    expect(kinds({ body: body.replace('Zoë', 'Zoe'), sent: [body] })).toEqual(['changed_body']);
    const other = signatureHeader([newSigningSecret()], nowS, body);
    expect(diagnoseSignature({ ...seen, header: other, sent: [body] })).toMatchObject({
      secret: null,
      findings: [{ kind: 'unknown_signature', message: expect.stringContaining('The body is as it was sent') }],
    });
    expect(diagnoseSignature({ ...seen, header: other, body: '{}', sent: [body] }).findings[0]!.message).toContain(
      'neither this body nor the one that Posthorn has',
    );
  });
  it('finds the previous secret, but not during an overlap, when both sign', () => {
    const old = signatureHeader([previousSecret], nowS, body);
    expect(diagnoseSignature({ ...seen, header: old, previousSecret })).toMatchObject({
      correct: false,
      secret: 'previous',
      findings: [{ kind: 'previous_secret' }],
    });
    expect(kinds({ header: old })).toEqual(['unknown_signature']);
    expect(kinds({ header: signatureHeader([secret, previousSecret], nowS, body), previousSecret })).toEqual([]);
  });
  it('finds a clock that is off by more than 300 s, in both directions, in whole seconds', () => {
    const at = (offS: number) => diagnoseSignature({ ...seen, receivedAtS: nowS + offS }).findings;
    expect([at(300), at(-300)]).toEqual([[], []]);
    expect(at(412)).toMatchObject([{ kind: 'clock_off', message: expect.stringContaining('off by 412 s') }]);
    expect(at(-301)).toMatchObject([{ kind: 'clock_off', message: expect.stringContaining('off by 301 s') }]);
  });
  it('blames the clock of a worker if a signature that fits is from the future, not that of the receiver', () => {
    const at = (aheadS: number, change = {}) =>
      diagnoseSignature({ ...seen, nowS: nowS - aheadS, receivedAtS: nowS - aheadS, ...change }).findings;
    expect(at(300)).toEqual([]);
    expect(at(301)).toEqual([
      { kind: 'clock_off', message: expect.stringMatching(/301 s in the future.*clock of the worker/) },
    ]);
    expect(at(301, { body: 'another', sent: [], receivedAtS: nowS })).toMatchObject([{ kind: 'unknown_signature' }]);
  });
  it('names everything that is wrong at once', () => {
    const old = signatureHeader([previousSecret], nowS, body);
    expect(kinds({ header: old, previousSecret, body: `${body}\n`, receivedAtS: nowS + 412 })).toEqual([
      'trailing_newline',
      'previous_secret',
      'clock_off',
    ]);
  });
  it.each([
    '',
    'x',
    `t=${nowS}`,
    'v1=aa',
    `t=${nowS},v1=AA`,
    header.toUpperCase(),
    header.slice(0, -1),
    `${header},t=1`,
  ])('says of %j that it is no header', (bad) => {
    expect(kinds({ header: bad })).toEqual(['malformed_header']);
  });
  it('never contains a secret, and agrees with what a receiver verifies', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.boolean(), fc.integer({ min: -400, max: 400 }), async (extra, isOld, offS) => {
        const signed = signatureHeader([isOld ? previousSecret : secret], nowS, body);
        const received = body + extra;
        const receivedAtS = nowS + offS;
        const found = diagnoseSignature({
          header: signed,
          body: received,
          secret,
          previousSecret,
          sent: [body],
          receivedAtS,
        });
        const bytes = new TextEncoder().encode(received);
        const check = { header: signed, body: bytes, secrets: [secret], nowS: receivedAtS };
        expect(found.correct).toBe(await verifySignature(check));
        expect(JSON.stringify(found)).not.toMatch(/whsec_/);
      }),
    );
  });
  it('takes a body of 300,000 newlines or brackets', () => {
    for (const character of ['\n', '[', '"'])
      expect(kinds({ body: `${character.repeat(300_000)}x`, sent: [body] })).toHaveLength(1);
  });
});
