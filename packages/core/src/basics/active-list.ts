/**
 * A list of what is in progress, for what comes and goes with each delivery. There, a `Set` or a `Map` would cost
 * memory: V8 replaces its table after every few changes. Once a table has got into the old generation, all later ones
 * are made there, and each dead table keeps what was in it until the next large collection of garbage (docs/decisions,
 * 58).
 */

/**
 * Items in the order in which they were added. `has` and `delete` search, the oldest first: meant for at most some
 * thousands.
 */
export class ActiveList<T> {
  /** Never shortened, or it would be replaced as it grows again: empty places follow the items. */
  readonly #items: (T | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The item at a place, 0 for the oldest; undefined beyond the last one. */
  at(place: number): T | undefined {
    return place < this.#size ? this.#items[place] : undefined;
  }

  /** Adds an item, which must not be in it. */
  add(item: T): void {
    this.#items[this.#size] = item;
    this.#size += 1;
  }

  has(item: T): boolean {
    return this.#items.indexOf(item) !== -1;
  }

  find(matches: (item: T) => boolean): T | undefined {
    for (let i = 0; i < this.#size; i++) {
      const item = this.#items[i] as T;
      if (matches(item)) return item;
    }
    return undefined;
  }

  /** Removes an item. Returns whether it was there. */
  delete(item: T): boolean {
    const items = this.#items;
    const at = items.indexOf(item);
    if (at === -1) return false;
    this.#size -= 1;
    for (let i = at; i < this.#size; i++) items[i] = items[i + 1];
    items[this.#size] = undefined;
    return true;
  }

  /** The items as they are now: they may be removed meanwhile. */
  [Symbol.iterator](): IterableIterator<T> {
    return (this.#items.slice(0, this.#size) as T[]).values();
  }
}
