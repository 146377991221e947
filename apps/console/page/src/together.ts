/** Passes on what comes one by one in groups, so that it is rendered together. */

/**
 * Returns `add`, whose items are passed on together: at once if none were in the last `everyMs`, otherwise when those
 * have passed; and `flush`, which passes on what waits now.
 */
export function together<T>(passOn: (items: T[]) => void, everyMs: number): { add(item: T): void; flush(): void } {
  let waiting: T[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let nextAtMs = 0;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    const items = waiting;
    waiting = [];
    nextAtMs = performance.now() + everyMs;
    passOn(items);
  };
  return {
    add(item) {
      waiting.push(item);
      timer ??= setTimeout(flush, Math.max(0, nextAtMs - performance.now()));
    },
    flush,
  };
}
