/** How the rows on screen compare with the newest first page of their list. */
import { describe, expect, it } from '@jest/globals';
import { changesText, compareRows } from './live-rows.ts';

const rows = (...ids: string[]) => ids.map((id) => ({ id, version: 1 }));
const page = (next_cursor: string | null, ...ids: string[]) => ({
  data: ids.map((id) => ({ id, version: 2 })),
  next_cursor,
});

describe('the rows on screen', () => {
  it('stay in their order and show what was read last', () => {
    const { rows: live, ...changes } = compareRows(rows('c', 'b', 'a'), true, page(null, 'c', 'b', 'a'));
    expect(live).toEqual(page(null, 'c', 'b', 'a').data);
    expect(changes).toEqual({ added: 0, mayBeMore: false, gone: 0, unread: 0 });
  });
  it('stay when newer rows push them out of the first page', () => {
    const { rows: live, ...changes } = compareRows(rows('c', 'b', 'a'), false, page('x', 'e', 'd', 'c'));
    expect(live.map(({ id, version }) => `${id}${version}`)).toEqual(['c2', 'b1', 'a1']);
    expect(changes).toEqual({ added: 2, mayBeMore: false, gone: 0, unread: 2 });
  });
  it('have an unknown number of newer rows when all of the first page is new', () => {
    expect(compareRows(rows('b', 'a'), false, page('x', 'f', 'e'))).toMatchObject({
      added: 2,
      mayBeMore: true,
      gone: 0,
    });
    expect(compareRows(rows('b', 'a'), true, page(null, 'f', 'e'))).toMatchObject({
      added: 2,
      mayBeMore: false,
      gone: 2,
    });
  });
  it('are gone if the first page reaches beyond them without them', () => {
    expect(compareRows(rows('c', 'b', 'a'), false, page('x', 'd', 'c', 'a'))).toMatchObject({ added: 1, gone: 1 });
    expect(compareRows(rows('c', 'b', 'a'), true, page(null, 'b'))).toMatchObject({ added: 0, gone: 2 });
  });
  it('are not refreshed from where the newest ones end', () => {
    expect(compareRows(rows('c', 'b', 'a'), true, page('x', 'c', 'b')).unread).toBe(1);
    expect(compareRows(rows('b', 'a'), false, page('x', 'd', 'c')).unread).toBe(2);
    expect(compareRows(rows('c', 'b', 'a'), true, page(null, 'c', 'b')).unread).toBe(0);
  });
  it('do not count rows of a later page as new', () => {
    expect(compareRows(rows('c', 'b'), false, page('x', 'c', 'a'))).toMatchObject({ added: 0, gone: 0 });
    // The list was complete, so the row is new wherever it is.
    expect(compareRows(rows('c', 'b'), true, page(null, 'c', 'b', 'a'))).toMatchObject({ added: 1, gone: 0 });
  });
});

describe('what changed in words', () => {
  it.each([
    [{ added: 0, mayBeMore: false, gone: 0 }, null],
    [{ added: 12, mayBeMore: false, gone: 0 }, '12 new'],
    [{ added: 50, mayBeMore: true, gone: 1 }, '50 or more new, 1 no longer matches'],
    [{ added: 0, mayBeMore: false, gone: 2 }, '2 no longer match'],
  ])('%j is %s', (changes, text) => expect(changesText(changes)).toBe(text));
});
