/** Reads a cache of what is made at the first need. */
import type { LRUCache } from 'lru-cache';

/**
 * What the cache has under this name, made by `create` if it has nothing. Cheaper than its own `memo`, which makes
 * objects of options for each call.
 */
export function knownOrNew<T extends object>(cache: LRUCache<string, T>, name: string, create: (name: string) => T): T {
  let found = cache.get(name);
  if (!found) {
    found = create(name);
    cache.set(name, found);
  }
  return found;
}
