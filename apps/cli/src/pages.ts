/** Reads what the operator API returns page by page. */

interface Page<T> {
  data: T[];
  /** Null on the last page. */
  next_cursor: string | null;
}

/**
 * Yields the items of one page after the other. `load` resolves to the page at a cursor (undefined: the first one).
 * Throws what `load` throws.
 */
export async function* pages<T>(load: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T[]> {
  let cursor: string | undefined;
  do {
    const page = await load(cursor);
    yield page.data;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/**
 * Shows the items of all pages. If one fails, shows those before it, since they stand for what was changed, and throws.
 */
export async function showAll<T>(parts: AsyncIterable<T[]>, show: (items: T[]) => void): Promise<T[]> {
  const items: T[] = [];
  try {
    for await (const some of parts) items.push(...some);
  } catch (error) {
    if (items.length > 0) show(items);
    throw error;
  }
  show(items);
  return items;
}
