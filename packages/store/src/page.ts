/** A page of a list, newest first: from an index in chunks, until enough of its entries are wanted. */
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** The cursor did not come from a list. */
export class BadCursor extends Error {
  override name = 'BadCursor';
}

/** A place in a list: the creation time and the id of the last item seen, or the stream's entry id in place of the delivery's. */
export interface Position {
  ms: number;
  id: string;
}

/** An index that a list is read from. */
export interface Source {
  /** The form of the ids of its positions. A cursor of another form comes from elsewhere, and Redis might refuse it as a position. */
  idForm: RegExp;
  /** Some candidates from a position onwards, newest first, each with its own position; fewer than `count` only at the end. */
  read(after: Position | undefined, count: number): Promise<(Position & { item: string })[]>;
}

/**
 * The most candidates one call looks at. A filter that rejects nearly all of a long list then gives a short page with a
 * cursor, instead of a long wait.
 */
const MAX_LOOKED_AT = 5_000;

/** Reads a page from a source of ids, loading the items behind them. Throws `BadCursor`. */
export async function readPage<T extends { id: string }>(
  source: Source,
  load: (ids: string[]) => Promise<(T | undefined)[]>,
  wanted: (item: T) => boolean,
  limit: number,
  cursor: string | undefined,
): Promise<Page<T>> {
  let after = cursor === undefined ? undefined : decodeCursor(cursor, source.idForm);
  const items = new Map<string, T>();
  for (let lookedAt = 0; lookedAt < MAX_LOOKED_AT; ) {
    const candidates = await source.read(after, limit + 1);
    const loaded = await load(candidates.map(({ item }) => item));
    for (const [i, candidate] of candidates.entries()) {
      const item = loaded[i];
      if (item !== undefined && wanted(item) && !items.has(item.id)) {
        // One more is there: the page ends before it.
        if (items.size === limit) return { items: [...items.values()], nextCursor: encodeCursor(after!) };
        items.set(item.id, item);
      }
      after = candidate;
    }
    if (candidates.length <= limit) return { items: [...items.values()], nextCursor: null };
    lookedAt += candidates.length;
  }
  return { items: [...items.values()], nextCursor: encodeCursor(after!) };
}

/** Redis orders members of equal score by their bytes; so does this. */
export function newestFirst(a: Position, b: Position): number {
  return b.ms - a.ms || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

function encodeCursor({ ms, id }: Position): string {
  return Buffer.from(`${ms} ${id}`).toString('base64url');
}

function decodeCursor(cursor: string, idForm: RegExp): Position {
  const [, digits, id = ''] =
    /^(\d{1,16}) ([A-Za-z0-9_-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const ms = Number(digits);
  if (!Number.isSafeInteger(ms) || ms === 0 || !idForm.test(id)) throw new BadCursor('Not a cursor of this list');
  return { ms, id };
}
