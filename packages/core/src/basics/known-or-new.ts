/** Reads a cache whose values are made when they are first needed. */

/** The part of an `LRUCache` (lru-cache) that is used here. This package does not import that one. */
interface Cache<T> {
  get(name: string): T | undefined;
  set(name: string, made: NoInfer<T>): unknown;
}

/**
 * What the cache has under this name, made by `create` if it has nothing. Cheaper than its own `memo`, which makes
 * objects of options for each call.
 */
export function knownOrNew<T extends object>(cache: Cache<T>, name: string, create: (name: string) => T): T {
  let found = cache.get(name);
  if (!found) {
    found = create(name);
    cache.set(name, found);
  }
  return found;
}
