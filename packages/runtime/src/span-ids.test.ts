/** The ids of spans, in all their forms. */
import { describe, expect, it } from '@jest/globals';
import { ID_BYTES, SpanIds } from './span-ids.ts';

describe('the ids of spans', () => {
  it('are the same in each form, and never come back', () => {
    const ids = new SpanIds();
    const seen = new Set<string>();
    for (let i = 0; i < 1_000; i++) {
      ids.next();
      const { block, index } = ids;
      const [traceId, spanId] = [block.traceId(index), block.spanId(index)];
      expect([traceId.length, spanId.length, ids.traceId]).toEqual([32, 16, traceId]);
      expect(Buffer.from(block.packed(index), 'base64url').toString('hex')).toBe(traceId + spanId);
      expect(block.bytes.toString('hex', index * ID_BYTES, (index + 1) * ID_BYTES)).toBe(traceId + spanId);
      seen.add(traceId).add(spanId);
    }
    expect(seen.size).toBe(2_000);
  });
});
