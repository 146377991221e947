/** The body that the chunks make. */
import { describe, expect, it } from '@jest/globals';
import { collectBody } from './collect-body.ts';

describe('a body', () => {
  it('has the bytes of all chunks, and keeps none of them', () => {
    const body = collectBody(20_000);
    const sent = Uint8Array.from({ length: 20_000 }, (_, i) => i % 251);
    // One that fits, tiny ones, and one that is larger than twice what there is room for.
    const sizes = [4_000, ...Array.from({ length: 1_000 }, () => 1), 15_000];
    let from = 0;
    for (const size of sizes) {
      const chunk = sent.slice(from, from + size);
      from += size;
      expect(body.add(chunk)).toBe(true);
      chunk.fill(255);
    }
    expect(body.whole()).toEqual(sent);
  });
  it('has at most as many bytes as it may have', () => {
    const body = collectBody(3);
    expect([body.add(new Uint8Array(2)), body.add(new Uint8Array(2)), body.add(new Uint8Array(1))]).toEqual([
      true,
      false,
      true,
    ]);
    expect(body.whole()).toHaveLength(3);
    expect(collectBody(3).whole()).toHaveLength(0);
  });
});
