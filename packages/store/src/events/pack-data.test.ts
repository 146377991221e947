/** Packing loses no byte of what a publisher sent, and makes a usual event small. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPacked, packData, unpackData } from './pack-data.ts';

const usual = JSON.stringify({
  id: '3f1c9a52-7d0e-4b8e-9a67-2f6f0f3f5c11',
  reference: 'order-1042',
  status: 'approved',
  country: 'FR',
  tier: 2,
  achieved_tier: 2,
  metadata: { user_id: 'u_8731' },
});

describe('packData', () => {
  it('halves a usual session snapshot, and more', () => {
    expect(usual).toHaveLength(164);
    expect(packData(usual).length).toBeLessThanOrEqual(60);
    expect(unpackData(packData(usual))).toBe(usual);
  });
  // The tokens are stored: what was packed by an earlier version must stay readable.
  it('writes what every later version has to read', () => {
    expect(packData(usual)).toBe(
      '\u0001\u0003\u0002PxyaUn0OS46aZy9vDz9cEQ\u0004order-1042\u0005\u0018\u0006FR\u00072\u00082\u000bu_8731\u000c',
    );
  });
  it('returns any JSON text unchanged after unpacking', () => {
    const words = fc.constantFrom(
      'status',
      'approved',
      'metadata',
      'user_id',
      '","',
      '":"',
      '\u0001',
      '\u001f',
      '\n',
      'é',
      '😀',
    );
    const strings = fc.oneof(words, fc.uuid(), fc.string(), fc.string({ unit: 'binary' }));
    const data = fc.dictionary(strings, fc.oneof(strings, fc.integer(), fc.dictionary(strings, strings)));
    fc.assert(
      fc.property(data, (value) => {
        const json = JSON.stringify(value);
        expect(isPacked(packData(json))).toBe(json.length <= 4_096);
        expect(unpackData(packData(json))).toBe(json);
      }),
      { numRuns: 2_000 },
    );
  });
  it('leaves a long text as it is, and one that contains a character that packing uses', () => {
    for (const json of [JSON.stringify({ id: 'x'.repeat(5_000) }), '{"id":"\u0002"}']) {
      expect([packData(json), isPacked(json)]).toEqual([json, false]);
    }
  });
});
