/** Records that are not as they must be: what is said of them. */
import { expect, it } from '@jest/globals';
import { decodeNamed } from './decode-named.ts';

it('names the record and its first number that is no time, or what the decoder threw', () => {
  const decode = (decoded: object) => () => decodeNamed('delivery dlv_1', () => decoded);
  expect(decode({ createdAtMs: 8.64e15, finishedAtMs: null, count: Number.NaN })()).toMatchObject({
    finishedAtMs: null,
  });
  const start = "The record of delivery dlv_1 can't be read: ";
  expect(decode({ createdAtMs: Number.NaN })).toThrow(`${start}its createdAtMs is NaN`);
  expect(decode({ createdAtMs: 9e15 })).toThrow(`${start}its createdAtMs is 9000000000000000`);
  expect(() => decodeNamed('delivery dlv_1', () => JSON.parse('{') as object)).toThrow(start);
  expect(decodeNamed('delivery dlv_1', () => undefined)).toBeUndefined();
});
