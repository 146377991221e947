/** Reads a page of a list, newest first: from an index in chunks, until enough of its entries match. */
import { loadReadable, separate, UnreadableRecord } from '../decode-named.ts';

export interface Page<T> {
  items: T[];
  nextCursor: string | null;
  /** The records that were left out because they can't be read; empty unless the request has `leaveOutUnreadable`. */
  unreadable: UnreadableRecord[];
}

/** Which page: at most `limit` items, after the page that returned `cursor`. */
export interface PageRequest {
  limit: number;
  cursor?: string | undefined;
  /**
   * Only for what shows records: one that can't be read is left out of the items, and takes the place of one. Whether a
   * filter would reject it is not known. Without this, such a record fails the call.
   */
  leaveOutUnreadable?: boolean | undefined;
}

/** The cursor did not come from this list. */
export class BadCursor extends Error {
  override name = 'BadCursor';
  constructor() {
    super('Not a cursor of this list');
  }
}

/**
 * A position in a list: the creation time and the id of the last item seen, or the stream's entry id in place of the
 * delivery's.
 */
export interface Position {
  ms: number;
  id: string;
}

/** An entry of an index: its position, and what `load` needs to load the item. */
export type Candidate = Position & { item: string };

/** An index that a list is read from. */
export interface Source {
  /**
   * The form of the ids of its positions. A cursor of another form comes from elsewhere, and Redis might refuse it as a
   * position.
   */
  idForm: RegExp;
  /** Some candidates from a position onwards, newest first; fewer than `count` only at the end. */
  read(after: Position | undefined, count: number): Promise<Candidate[]>;
}

/**
 * Candidates that one call looks at. A filter that rejects nearly all of a long list then gives a short page with a
 * cursor, instead of a long wait.
 */
const MAX_LOOKED_AT = 5_000;
/**
 * Candidates that are read at once at most. A filter that rejects most of them is then not read in thousands of small
 * steps.
 */
const MAX_CHUNK = 500;

/** Reads a page from a source of ids, loading the items behind them. Throws `BadCursor`. */
export async function readPage<T extends { id: string }>(
  source: Source,
  load: (ids: string[]) => Promise<(T | undefined)[]>,
  isWanted: (item: T) => boolean,
  { limit, cursor, leaveOutUnreadable = false }: PageRequest,
): Promise<Page<T>> {
  let after = cursor === undefined ? undefined : decodeCursor(cursor, source.idForm);
  const found = new Map<string, T | UnreadableRecord>();
  const pageUpTo = (end: Position | undefined) => ({
    ...separate([...found.values()]),
    nextCursor: end === undefined ? null : encodeCursor(end),
  });
  let count = limit + 1;
  for (let lookedAt = 0; lookedAt < MAX_LOOKED_AT; ) {
    const candidates = await source.read(after, count);
    const ids = candidates.map(({ item }) => item);
    const loaded = await (leaveOutUnreadable ? loadReadable(load, ids) : load(ids));
    for (const [i, candidate] of candidates.entries()) {
      const item = loaded[i];
      const isShown = item instanceof UnreadableRecord || (item !== undefined && isWanted(item));
      if (isShown && !found.has(item.id)) {
        // The list goes on: the page ends before this item.
        if (found.size === limit) return pageUpTo(after);
        found.set(item.id, item);
      }
      after = candidate;
    }
    if (candidates.length < count) return pageUpTo(undefined);
    lookedAt += candidates.length;
    count = Math.max(count, Math.min(2 * count, MAX_CHUNK));
  }
  return pageUpTo(after);
}

/** The values that some fields of an item must have; undefined stands for any value. */
export type Filter<T, Name extends keyof T = keyof T> = { [N in Name]?: T[N] | undefined };

/** Creation times in milliseconds, both ends included. */
export interface TimeRange {
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

/** Whether an item has each value of a filter. */
export function matches<T extends object>(item: T, filter: Filter<T>): boolean {
  const names = Object.keys(filter) as (keyof T)[];
  return names.every((name) => filter[name] === undefined || filter[name] === item[name]);
}

/** The `count` newest candidates after a position. */
export function newestAfter(candidates: Candidate[], after: Position | undefined, count: number): Candidate[] {
  const next = candidates.filter((candidate) => after === undefined || newestFirst(after, candidate) < 0);
  return next.sort(newestFirst).slice(0, count);
}

/** Redis orders members of equal score by their bytes; so does this. */
export function newestFirst(a: Position, b: Position): number {
  return b.ms - a.ms || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

/** The same for items. */
export function newestCreatedFirst(
  a: { createdAtMs: number; id: string },
  b: { createdAtMs: number; id: string },
): number {
  return newestFirst({ ms: a.createdAtMs, id: a.id }, { ms: b.createdAtMs, id: b.id });
}

export function encodeCursor({ ms, id }: Position): string {
  return Buffer.from(`${ms} ${id}`).toString('base64url');
}

export function decodeCursor(cursor: string, idForm: RegExp): Position {
  const [, digits, id = ''] =
    /^(\d{1,16}) ([A-Za-z0-9_-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const ms = Number(digits);
  if (!Number.isSafeInteger(ms) || ms === 0 || !idForm.test(id)) throw new BadCursor();
  return { ms, id };
}
