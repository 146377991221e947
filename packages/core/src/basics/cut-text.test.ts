/** Text that is cut off. */
import { describe, expect, it } from '@jest/globals';
import { cutText } from './cut-text.ts';

describe('cutText', () => {
  it.each([
    ['abc', 'abc'],
    ['abcd', 'ab…'],
    ['🙂🙂🙂', '🙂🙂🙂'],
    ['🙂🙂🙂🙂', '🙂🙂…'],
  ])('makes of %s at most three characters, none of them half', (text, cut) => {
    expect(cutText(text, 3)).toBe(cut);
  });
});
