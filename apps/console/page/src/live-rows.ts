/**
 * Compares the rows on screen with the newest first page of their list: what has changed, what is new, what is gone.
 */

interface LiveRows<T> {
  /** The rows on screen in their order, each as it was last read. */
  rows: T[];
  /** Rows that the list has before or between those on screen. */
  added: number;
  /** There may be more such rows than were read. */
  mayBeMore: boolean;
  /** Rows on screen that the list no longer has. */
  gone: number;
  /** The last rows on screen, as far as the newest ones do not reach to them: they are not refreshed. */
  unread: number;
}

/**
 * `shown` are the rows on screen and `isComplete` says that no further page exists. `newest` is the beginning of the
 * list as just read. A row on screen that is absent there has either moved to a later page or left the list: it has
 * left if the page reaches beyond it.
 */
export function compareRows<T extends { id: string }>(
  shown: T[],
  isComplete: boolean,
  newest: { data: T[]; next_cursor: string | null },
): LiveRows<T> {
  const fresh = new Map(newest.data.map((row) => [row.id, row]));
  const shownIds = new Set(shown.map(({ id }) => id));
  const lastCommon = newest.data.findLastIndex(({ id }) => shownIds.has(id));
  const isWhole = newest.next_cursor === null;
  // Newest rows behind the last common one may belong to a page that is not on screen yet, so they are not new.
  const reach = isComplete || lastCommon < 0 ? newest.data : newest.data.slice(0, lastCommon);
  const lastFresh = isWhole ? shown.length : shown.findLastIndex(({ id }) => fresh.has(id));
  return {
    rows: shown.map((row) => fresh.get(row.id) ?? row),
    added: reach.filter(({ id }) => !shownIds.has(id)).length,
    mayBeMore: lastCommon < 0 && !isWhole,
    gone: shown.slice(0, Math.max(lastFresh, 0)).filter(({ id }) => !fresh.has(id)).length,
    unread: isWhole ? 0 : shown.length - 1 - lastFresh,
  };
}

/** Returns for example `12 new`, `50 or more new, 2 no longer match`, or null if nothing is new or gone. */
export function changesText({ added, mayBeMore, gone }: Omit<LiveRows<unknown>, 'rows' | 'unread'>): string | null {
  const parts = [
    ...(added > 0 ? [`${added}${mayBeMore ? ' or more' : ''} new`] : []),
    ...(gone > 0 ? [`${gone} no longer ${gone === 1 ? 'matches' : 'match'}`] : []),
  ];
  return parts.length === 0 ? null : parts.join(', ');
}
