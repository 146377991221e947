/** A cache of what is made at the first need. */
import { describe, expect, it } from '@jest/globals';
import { knownOrNew } from './known-or-new.ts';

describe('knownOrNew', () => {
  it('makes what the cache does not know, once', () => {
    const cache = new Map<string, { name: string }>();
    const first = knownOrNew(cache, 'a', (name) => ({ name }));
    expect(first).toEqual({ name: 'a' });
    expect(knownOrNew(cache, 'a', () => ({ name: 'another' }))).toBe(first);
  });
});
