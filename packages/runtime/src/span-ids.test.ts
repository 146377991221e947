/** The ids of spans, in all their forms. */
import { describe, expect, it } from '@jest/globals';
import { ID_BYTES, SpanIds } from './span-ids.ts';

describe('the ids of spans', () => {
  it('are the same in each form, and never come back', () => {
    const ids = new SpanIds();
    const seen = new Set<string>();
    for (let i = 0; i < 1_000; i++) {
      ids.next();
      const { traceId, spanId, packed, bytes, at } = ids;
      expect([traceId.length, spanId.length]).toEqual([32, 16]);
      expect(Buffer.from(packed, 'base64url').toString('hex')).toBe(traceId + spanId);
      expect(bytes.toString('hex', at, at + ID_BYTES)).toBe(traceId + spanId);
      seen.add(traceId).add(spanId);
    }
    expect(seen.size).toBe(2_000);
  });
});
