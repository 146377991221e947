/** JSON as publishers write it: numbers kept to the digit, depth limited, errors for the caller. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { AppError, isRawNumber, MAX_JSON_DEPTH, parseJson } from '../index.ts';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

function refusal(text: string): AppError {
  try {
    parseJson(text);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error(`Accepted: ${text}`);
}

describe('parseJson', () => {
  it.each([
    '12345678901234567890',
    '9007199254740993',
    '1.50',
    '-0',
    '1e400',
    '0.1',
    '1E5',
    '0.0000001',
    '123456789.123456789123',
    '[1,2.0]',
  ])('keeps %s digit for digit', (text) => {
    expect(JSON.stringify(parseJson(text))).toBe(text);
  });
  it('keeps any JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.stringify(parseJson(text))).toBe(text);
      }),
    );
  });
  it('keeps any number, wherever it is', () => {
    const digits = fc.stringMatching(/^[0-9]{1,24}$/);
    const number = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.constantFrom('0', '1', '10', '907199254740993'),
        fc.option(digits),
        fc.option(digits),
      )
      .map(([sign, whole, fraction, exponent]) =>
        [sign, whole, fraction === null ? '' : `.${fraction}`, exponent === null ? '' : `e-${exponent}`].join(''),
      );
    const place = fc.constantFrom('[N]', '{"a":N}', '[1,N]', '{"7e5":"x, 8e8","b":N}', 'N');
    fc.assert(
      fc.property(number, place, (text, around) => {
        const json = around.replace('N', text);
        expect(JSON.stringify(parseJson(json))).toBe(json);
        expect(JSON.stringify(parseJson(` ${around.replace('N', `\n\t ${text} `)} `))).toBe(json);
      }),
    );
  });
  it('keeps only those numbers as text that a double would change', () => {
    const value = parseJson('{"a":"x","b":true,"c":null,"d":1,"e":[2.5],"raw":1e400}') as Record<string, unknown>;
    expect(value).toMatchObject({ a: 'x', b: true, c: null, d: 1, e: [2.5] });
    expect(isRawNumber(value.raw)).toBe(true);
    expect(isRawNumber(value.d)).toBe(false);
  });
  it('treats a key named __proto__ as an ordinary key', () => {
    const text = '{"__proto__":{"polluted":true},"a":1}';
    expect(JSON.stringify(parseJson(text))).toBe(text);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
  it.each([
    ['', ': it ends too soon'],
    ['{"a":1,\n"b":1,}', ': see line 2, column 7'],
    ['{"a":01}', ': see line 1, column 7'],
    ['{"a":1.50,}', ': see line 1, column 11'],
    ['"\u0001"', ': see line 1, column 2'],
    // The parser quotes the text in place of saying where.
    ['[1,]', ''],
    ['{"a":secret}', ''],
  ])('refuses %j, and says where it can, but quotes nothing', (text, where) => {
    const error = refusal(text);
    expect(error).toMatchObject({ code: 'invalid_json', publicMessage: `The body is not valid JSON${where}.` });
    expect(error.cause).toMatchObject({ name: 'SyntaxError' });
  });
});

describe('the depth of a body', () => {
  it.each([
    ['arrays', nested(MAX_JSON_DEPTH)],
    ['objects', `${'{"a":'.repeat(MAX_JSON_DEPTH)}1${'}'.repeat(MAX_JSON_DEPTH)}`],
    ['many one after the other', `[${Array.from({ length: 300 }, () => '[],{}').join(',')}]`],
    ['brackets in a string', JSON.stringify('[{'.repeat(1_000))],
    ['brackets in a string behind an escaped quote', JSON.stringify(`"${'[{'.repeat(1_000)}`)],
  ])('may reach 512: %s', (_what, text) => {
    expect(MAX_JSON_DEPTH).toBe(512);
    expect(JSON.stringify(parseJson(text))).toBe(text);
  });
  it.each([
    ['arrays', nested(MAX_JSON_DEPTH + 1)],
    ['objects', `${'{"a":'.repeat(MAX_JSON_DEPTH + 1)}1${'}'.repeat(MAX_JSON_DEPTH + 1)}`],
    ['enough to exhaust a stack', nested(100_000)],
    ['behind a string', `["a",${nested(MAX_JSON_DEPTH)}]`],
    ['behind a string that ends with a backslash', `["\\\\",${nested(MAX_JSON_DEPTH)}]`],
    ['behind brackets in a string', `["]}",${nested(MAX_JSON_DEPTH)}]`],
  ])('may not exceed 512: %s', (_what, text) => {
    expect(refusal(text)).toMatchObject({
      code: 'invalid_json',
      publicMessage: 'The body nests deeper than 512 levels.',
    });
  });
});

describe('the number of values', () => {
  const values = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join(',')}]`;
  it('is limited to 100,000 if a number must be kept as text', () => {
    expect(parseJson(values(99_999, '1e5'))).toHaveLength(99_999);
    expect(refusal(values(100_000, '1e5'))).toMatchObject({
      code: 'invalid_json',
      publicMessage: expect.stringContaining('more than 100000 values'),
    });
  });
  it('is limited to 262,144 otherwise', () => {
    const pairs = (count: number) => `{${Array.from({ length: count }, (_, i) => `"${i}":1`).join(',')}}`;
    // The outermost value counts too.
    for (const text of [values(262_143, '1'), values(131_071, '[2]'), values(262_143, '{}'), pairs(262_143)])
      expect(JSON.stringify(parseJson(text))).toBe(text);
    for (const text of [values(262_144, '1'), values(131_072, '[2]'), values(262_144, '{}'), pairs(262_144)]) {
      expect(refusal(text)).toMatchObject({
        code: 'invalid_json',
        publicMessage: 'The body has more than 262144 values. Send fewer events at once.',
      });
    }
  });
  it('includes no commas and brackets in strings', () => {
    expect(parseJson(`["${',['.repeat(200_000)}",1e5]`)).toHaveLength(2);
    expect(parseJson(`["${',['.repeat(200_000)}",1]`)).toHaveLength(2);
  });
});
