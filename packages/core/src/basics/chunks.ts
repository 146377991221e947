/** Divides lists into parts, so that no step takes too long. */

/** Yields the items in parts of `size`; the last one may have fewer. */
export function* chunksOf<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}
