/** Reads a cache whose values are made when they are first needed. */

/**
 * The part of a `Map`, `WeakMap` or `LRUCache` (lru-cache) that is used here. This package does not import that one.
 */
interface Cache<K, T> {
  get(key: K): T | undefined;
  set(key: K, made: NoInfer<T>): unknown;
}

/**
 * What the cache has under this key, made by `create` if it has nothing. Cheaper than an `LRUCache`'s own `memo`, which
 * makes objects of options for each call.
 */
export function knownOrNew<K, T extends object>(cache: Cache<K, T>, key: NoInfer<K>, create: (key: K) => T): T {
  let found = cache.get(key);
  if (!found) {
    found = create(key);
    cache.set(key, found);
  }
  return found;
}
