/** Reads a live feed once for all listeners of this process, and only while there are any. */
import { EventEmitter, once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@posthorn/core';
import type { Logger, Service } from '@posthorn/runtime';
import {
  announceListeners,
  endOfFeed,
  FEED_START,
  type Feed,
  type FeedPage,
  type FeedRecord,
  readFeed,
  type Store,
} from '@posthorn/store';

const READ_EVERY_MS = 250;
/** A third of the time for which writers remember that someone listens. */
const ANNOUNCE_EVERY_MS = 3_000;
/** The most entries that are read at once. */
const MAX_PAGE = 500;
/** The most entries in memory. A listener that is further behind reads from Redis until it has caught up. */
const MAX_KEPT = 1_000;
const MAX_LISTENERS_OF_OPERATOR = 10;
const MAX_LISTENERS = 50;

export interface FeedItem<T> {
  id: string;
  /** Undefined where the first listener came: this only says that some may have been left out. */
  entry: T | undefined;
  /** Entries that were left out before this one: how many, or null if that is unknown. */
  dropped: number | null;
}

export interface FeedHub<T> extends Service {
  /** Fires when the hub stops. */
  stopping: AbortSignal;
  /**
   * Yields what follows `afterId`, or what follows now, four times a second also if there is nothing; not while Redis
   * is unavailable. Ends when the hub stops or `signal` fires. At most `maxItems` at once. Throws `AppError`
   * `too_many_requests`, and errors of Redis.
   */
  follow(listener: {
    operator: string;
    afterId: string | undefined;
    maxItems: number;
    signal: AbortSignal;
  }): AsyncGenerator<FeedBatch<T>>;
}

interface FeedBatch<T> {
  /** Where the listener is after this batch. */
  cursor: string;
  items: FeedItem<T>[];
  /** Before this batch, an unknown number may have been left out. */
  hasGap: boolean;
}

export function createFeedHub<T>(options: {
  store: Store;
  feed: Feed;
  decode: (text: string) => T;
  logger: Logger;
}): FeedHub<T> {
  const { store, feed, decode, logger } = options;
  const stopping = new AbortController();
  const turns = new EventEmitter().setMaxListeners(MAX_LISTENERS);
  const operators: string[] = [];
  const kept = createKept<T>();
  let reading: Promise<void> | undefined;

  const toItem = ({ id, text, dropped }: FeedRecord): FeedItem<T> =>
    text === undefined ? { id, entry: undefined, dropped: null } : { id, entry: decode(text), dropped };
  const toItems = ({ records, hasGap }: FeedPage): FeedItem<T>[] =>
    records.map((record, i) => ({ ...toItem(record), ...(hasGap && i === 0 && { dropped: null }) }));

  /** Reads what is new, page by page. */
  const readNew = async () => {
    for (let isFull = true; isFull && !stopping.signal.aborted; ) {
      const page = await readFeed(store, feed, kept.end() ?? kept.restart(await endOfFeed(store, feed)), MAX_PAGE);
      if (page.isLost) kept.restart(FEED_START);
      else kept.push(toItems(page));
      isFull = page.records.length === MAX_PAGE;
      turns.emit('turn');
    }
  };
  const read = async () => {
    let announcedAtMs = performance.now();
    while (operators.length > 0 && !stopping.signal.aborted) {
      try {
        if (performance.now() - announcedAtMs >= ANNOUNCE_EVERY_MS) {
          await announceListeners(store, feed);
          announcedAtMs = performance.now();
        }
        await readNew();
      } catch (err) {
        logger.warn({ err, feed }, 'feed.read_failed');
      }
      await wait(READ_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    kept.clear();
    // In the same turn as the last look at the listeners: the next one starts to read again.
    reading = undefined;
  };

  const admit = (operator: string) => {
    const own = operators.filter((other) => other === operator).length;
    if (own >= MAX_LISTENERS_OF_OPERATOR || operators.length >= MAX_LISTENERS)
      throw new AppError('too_many_requests', 'Too many live streams are open.', { retryAfterS: 5 });
    if (stopping.signal.aborted)
      throw new AppError('unavailable', 'This console is stopping. Connect again.', { retryAfterS: 1 });
    operators.push(operator);
  };
  /** Returns what follows a place, from memory if possible. */
  const next = async (cursor: string, limit: number): Promise<{ items: FeedItem<T>[]; isLost: boolean }> => {
    const found = kept.after(cursor, limit);
    if (found) return { items: found, isLost: false };
    const page = await readFeed(store, feed, cursor, limit);
    return { items: toItems(page), isLost: page.isLost };
  };

  return {
    name: `live ${feed}`,
    stopping: stopping.signal,
    start: async () => undefined,
    async *follow({ operator, afterId, maxItems, signal }) {
      admit(operator);
      try {
        const ends = AbortSignal.any([signal, stopping.signal]);
        // Only then does anything follow that this listener can wait for.
        await announceListeners(store, feed);
        let hasGap = false;
        let cursor = afterId ?? (await endOfFeed(store, feed));
        reading ??= read();
        while (!ends.aborted) {
          const { items, isLost } = await next(cursor, maxItems);
          if (isLost) [cursor, hasGap] = [kept.start() ?? (await endOfFeed(store, feed)), true];
          cursor = items.at(-1)?.id ?? cursor;
          yield { cursor, items, hasGap };
          hasGap = false;
          // A listener that is behind does not wait.
          if (items.length < maxItems) await once(turns, 'turn', { signal: ends }).catch(() => undefined);
        }
      } finally {
        operators.splice(operators.indexOf(operator), 1);
      }
    },
    async stop() {
      stopping.abort();
      await reading;
    },
  };
}

/** The newest entries, without a gap between the places `start` and `end`. */
function createKept<T>() {
  let items: FeedItem<T>[] = [];
  let start: string | undefined;
  const restart = (at: string) => {
    [items, start] = [[], at];
    return at;
  };
  return {
    restart,
    start: () => start,
    end: () => items.at(-1)?.id ?? start,
    push(more: FeedItem<T>[]): void {
      items = [...items, ...more];
      const excess = items.splice(0, Math.max(0, items.length - MAX_KEPT));
      start = excess.at(-1)?.id ?? start;
    },
    /** Returns at most `limit` entries after a place, or undefined if that place is not known here. */
    after(cursor: string, limit: number): FeedItem<T>[] | undefined {
      const at = cursor === start ? 0 : items.findLastIndex(({ id }) => id === cursor) + 1;
      return at === 0 && cursor !== start ? undefined : items.slice(at, at + limit);
    },
    clear(): void {
      [items, start] = [[], undefined];
    },
  };
}
