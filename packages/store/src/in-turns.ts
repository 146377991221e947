/** Goes through long lists in short turns, so that the event loop is never blocked for more than a few milliseconds. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Items of a turn: one to three milliseconds. */
const ITEMS_AT_ONCE = 4_000;

/** Calls `visit` with each item. The list must not change meanwhile. */
export async function visitInTurns<T>(items: readonly T[], visit: (item: T) => void): Promise<void> {
  for (let start = 0; start < items.length; start += ITEMS_AT_ONCE) {
    if (start > 0) await nextTurn();
    for (const item of items.slice(start, start + ITEMS_AT_ONCE)) visit(item);
  }
}

/** Merges two sorted lists into a new one, without the items of the first that `isDropped` names. */
export async function mergeInTurns<T>(
  first: readonly T[],
  second: readonly T[],
  compare: (a: T, b: T) => number,
  isDropped: (item: T) => boolean = () => false,
): Promise<T[]> {
  const merged: T[] = [];
  let at = 0;
  await visitInTurns(first, (item) => {
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

/** Returns a sorted copy. */
export async function sortInTurns<T>(items: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  if (items.length <= ITEMS_AT_ONCE) return [...items].sort(compare);
  await nextTurn();
  const middle = items.length >> 1;
  const lower = await sortInTurns(items.slice(0, middle), compare);
  const upper = await sortInTurns(items.slice(middle), compare);
  return await mergeInTurns(lower, upper, compare);
}
