/** Into which parts a JSON text is split, also one that is cut off; characters that nobody sees. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { escapeInvisible, jsonTokens, looksLikeJson } from './json-tokens.ts';

const kindsOf = (json: string) => jsonTokens(json).flatMap(({ kind, text }) => (kind === null ? [] : [[kind, text]]));

describe('the tokens of a JSON text', () => {
  it('are names, strings, numbers and words', () => {
    expect(kindsOf('{ "a\\"b" : "c: \\"d\\"", "n": [-1.5e+7, true, false, null] }')).toEqual([
      ['name', '"a\\"b"'],
      ['string', '"c: \\"d\\""'],
      ['name', '"n"'],
      ['number', '-1.5e+7'],
      ['word', 'true'],
      ['word', 'false'],
      ['word', 'null'],
    ]);
  });
  it('include a string that is cut off', () => {
    expect(kindsOf('{"a": "the beginn')).toEqual([
      ['name', '"a"'],
      ['string', '"the beginn'],
    ]);
  });
  it('are together exactly the text, for JSON and for anything else', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string(), fc.string({ unit: fc.constantFrom('"', '\\', ':', '1', '\n', '{') })),
        (text) => {
          expect(
            jsonTokens(text)
              .map((token) => token.text)
              .join(''),
          ).toBe(text);
        },
      ),
    );
  });
  it('of each value of a valid document are of its type', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.boolean())), (value) => {
        const expected = Object.entries(value).flatMap(([name, item]) => [
          ['name', JSON.stringify(name)],
          [{ string: 'string', number: 'number', boolean: 'word' }[typeof item as 'string'], JSON.stringify(item)],
        ]);
        expect(kindsOf(JSON.stringify(value))).toEqual(expected);
      }),
    );
  });
});

describe('invisible characters', () => {
  it.each([
    ['\u202egpj.exe', '\\u202egpj.exe'],
    ['u_1\u200b', 'u_1\\u200b'],
    ['\u{e0041}', '\\udb40\\udc41'],
    ['é 💥\n', 'é 💥\n'],
  ])('are escaped: %j', (text, expected) => {
    expect(escapeInvisible(text)).toBe(expected);
  });
  it('are in the document as before', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(JSON.parse(escapeInvisible(JSON.stringify(text)))).toBe(text);
      }),
    );
  });
});

describe('a text', () => {
  it.each([
    ['{"a": 1}', true],
    [' [1, 2', true],
    ['<html>', false],
    ['ok', false],
    ['', false],
  ])('%j looks like JSON: %s', (text, expected) => {
    expect(looksLikeJson(text)).toBe(expected);
  });
});
