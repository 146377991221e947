/**
 * Goes through long lists in short slices, so that the event loop is never blocked for more than a few milliseconds.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Items of a slice: one to three milliseconds. */
const ITEMS_AT_ONCE = 4_000;

/**
 * Calls `visit` with each item. The list must not change meanwhile. `weightOf`: as how many items of usual size one
 * counts.
 */
export async function visitInSlices<T>(
  items: readonly T[],
  visit: (item: T) => void,
  weightOf: (item: T) => number = () => 1,
): Promise<void> {
  let sliceWeight = 0;
  for (const item of items) {
    const weight = weightOf(item);
    if (sliceWeight > 0 && sliceWeight + weight > ITEMS_AT_ONCE) {
      await nextTurn();
      sliceWeight = 0;
    }
    sliceWeight += weight;
    visit(item);
  }
}

/** Merges two sorted lists into a new one, without the items of the first that `isDropped` names. */
async function mergeInSlices<T>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
  isDropped: (item: T) => boolean = () => false,
): Promise<T[]> {
  const merged: T[] = [];
  let at = 0;
  await visitInSlices(first, (item) => {
    if (isDropped(item)) return;
    for (let next = second[at]; next !== undefined && compare(next, item) < 0; next = second[at]) {
      merged.push(next);
      at += 1;
    }
    merged.push(item);
  });
  for (const item of second.slice(at)) merged.push(item);
  return merged;
}

/** Up to this many changes of a sorted list are made one by one. */
const MAX_SPLICED = 500;
/** Changes of a slice: each moves the rest of the list, some tens of microseconds for 100,000 items. */
const SPLICED_AT_ONCE = 50;

/** Changes a sorted list, or returns a new one in its place: without some of its items, and with others. */
export async function changeInSlices<T>(
  list: T[],
  removed: readonly T[],
  added: readonly T[],
  compare: (a: T, b: T) => number,
): Promise<T[]> {
  if (removed.length + added.length > MAX_SPLICED) {
    const gone = new Set(removed);
    return await mergeInSlices(list, await sortInSlices(added, compare), compare, (item) => gone.has(item));
  }
  const positionOf = (item: T) => positionIn(list, (other) => compare(other, item) >= 0);
  const splices = [
    ...removed.map((item) => () => list.splice(positionOf(item), 1)),
    ...added.map((item) => () => list.splice(positionOf(item), 0, item)),
  ];
  for (const [i, splice] of splices.entries()) {
    if (i > 0 && i % SPLICED_AT_ONCE === 0) await nextTurn();
    splice();
  }
  return list;
}

/** The position of the first item of a list for which `isAfter` holds; it must hold for all items after that too. */
export function positionIn<T>(list: readonly T[], isAfter: (item: T) => boolean): number {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const item = list[middle];
    if (item !== undefined && isAfter(item)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/**
 * Returns the items for which `isWanted` holds. The list must not change meanwhile. `weightOf`: as for `visitInSlices`.
 */
export async function filterInSlices<T>(
  items: readonly T[],
  isWanted: (item: T) => boolean,
  weightOf?: (item: T) => number,
): Promise<T[]> {
  const found: T[] = [];
  const visit = (item: T) => {
    if (isWanted(item)) found.push(item);
  };
  await visitInSlices(items, visit, weightOf);
  return found;
}

/**
 * Returns the first `count` items after a place in a sorted list for which `isWanted` holds; undefined is before the
 * first one. `current` returns the list, which may change between two turns: an item that moves meanwhile may be passed
 * over or visited again.
 */
export async function walkInSlices<P, T extends P>(
  current: () => readonly T[],
  after: P | undefined,
  compare: (a: P, b: P) => number,
  isWanted: (item: T) => boolean,
  count: number,
): Promise<T[]> {
  const found: T[] = [];
  for (let place: P | undefined = after; ; ) {
    const list = current();
    const last: P | undefined = place;
    const start = last === undefined ? 0 : positionIn(list, (item) => compare(last, item) < 0);
    const some = list.slice(start, start + ITEMS_AT_ONCE);
    for (const item of some) {
      if (!isWanted(item)) continue;
      found.push(item);
      if (found.length === count) return found;
    }
    if (some.length < ITEMS_AT_ONCE) return found;
    place = some.at(-1);
    await nextTurn();
  }
}

/** Returns a sorted copy. */
export async function sortInSlices<T>(items: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  if (items.length <= ITEMS_AT_ONCE) return [...items].sort(compare);
  await nextTurn();
  const middle = items.length >> 1;
  const lower = await sortInSlices(items.slice(0, middle), compare);
  const upper = await sortInSlices(items.slice(middle), compare);
  return await mergeInSlices(lower, upper, compare);
}
