/** The limit of a cache (lru-cache) that takes memory only for what is in it. This package does not import that one. */

/**
 * Options of an `LRUCache` for at most `count` items. With its option `max`, a cache makes its tables for that many
 * items at once: 240 KB for 10,000, or 400 if they expire.
 */
export function atMost(count: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: count, sizeCalculation: one };
}

const one = () => 1;
