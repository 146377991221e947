/** Reads a live feed once for all listeners of this process, and only while there are any. */
import { EventEmitter, once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@posthorn/core';
import { createSeldom, type Logger } from '@posthorn/runtime';
import {
  announceListeners,
  endOfFeed,
  FEED_START,
  type Feed,
  type FeedPage,
  readFeed,
  type Store,
  WRITERS_KNOW_AFTER_MS,
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

interface FeedBatch<T> {
  /** Where the listener is after this batch. */
  cursor: string;
  items: FeedItem<T>[];
  /** Before this batch, an unknown number may have been left out. */
  hasGap: boolean;
}

interface FeedHubOptions<T> {
  store: Store;
  feed: Feed;
  decode: (text: string) => T;
  /** Whether listeners wait until nothing is left out any more. Without it, they miss the first two seconds. */
  waitsForWriters?: boolean;
  logger: Logger;
}

interface Listener {
  operator: string;
  afterId: string | undefined;
  maxItems: number;
  signal: AbortSignal;
}

export class FeedHub<T> {
  readonly #options: FeedHubOptions<T>;
  readonly #stopping = new AbortController();
  /** Fires when the hub stops. */
  readonly stopping = this.#stopping.signal;
  readonly #turns = new EventEmitter().setMaxListeners(MAX_LISTENERS);
  /** The operator of each listener. */
  readonly #operators: string[] = [];
  readonly #kept = new KeptItems<T>();
  #reading: Promise<void> | undefined;
  /** Resolves when writers know of the listeners, or the hub stops. */
  #known: Promise<void> | undefined;

  constructor(options: FeedHubOptions<T>) {
    this.#options = options;
  }

  /**
   * Yields batches of at most `maxItems` entries: those after `afterId`, or those that come from now on. While there
   * are none, yields an empty batch four times a second, but nothing while Redis is unavailable. Ends when the hub
   * stops or `signal` fires. Throws `AppError` `too_many_requests` or `stopping`, and errors of Redis.
   */
  async *follow({ operator, afterId, maxItems, signal }: Listener): AsyncGenerator<FeedBatch<T>> {
    const { store, feed } = this.#options;
    this.#admit(operator);
    try {
      const ends = AbortSignal.any([signal, this.stopping]);
      // Processes write entries only while they know of a listener.
      await announceListeners(store, feed);
      let hasGap = false;
      let cursor = afterId ?? (await endOfFeed(store, feed));
      if (this.#reading === undefined) {
        this.#reading = this.#read();
        this.#known = this.#wait(WRITERS_KNOW_AFTER_MS);
      }
      if (this.#options.waitsForWriters) await this.#known;
      while (!ends.aborted) {
        const { items, isLost } = await this.#next(cursor, maxItems);
        if (isLost) [cursor, hasGap] = [this.#kept.start ?? (await endOfFeed(store, feed)), true];
        cursor = items.at(-1)?.id ?? cursor;
        yield { cursor, items, hasGap };
        hasGap = false;
        // After a full batch there may be more to read at once.
        if (items.length < maxItems) await once(this.#turns, 'turn', { signal: ends }).catch(() => undefined);
      }
    } finally {
      this.#operators.splice(this.#operators.indexOf(operator), 1);
    }
  }

  /** Ends all listeners, and resolves when nothing is read any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#reading;
  }

  #admit(operator: string): void {
    const own = this.#operators.filter((other) => other === operator).length;
    if (own >= MAX_LISTENERS_OF_OPERATOR || this.#operators.length >= MAX_LISTENERS)
      throw new AppError(
        'too_many_requests',
        `Too many live streams are open: an operator may have ${MAX_LISTENERS_OF_OPERATOR} on a console, all together ${MAX_LISTENERS}. Close a page of the live tail, or end a "posthorn tail" or "listen".`,
        { retryAfterS: 5 },
      );
    if (this.stopping.aborted)
      throw new AppError('stopping', 'This console is stopping. Connect again.', { retryAfterS: 1 });
    this.#operators.push(operator);
  }

  /** Returns what follows a place, from memory if possible. */
  async #next(cursor: string, limit: number): Promise<{ items: FeedItem<T>[]; isLost: boolean }> {
    const found = this.#kept.after(cursor, limit);
    if (found) return { items: found, isLost: false };
    const page = await readFeed(this.#options.store, this.#options.feed, cursor, limit);
    return { items: this.#toItems(page), isLost: page.isLost };
  }

  /** Reads while there are listeners. */
  async #read(): Promise<void> {
    const { store, feed, logger } = this.#options;
    const mayLog = createSeldom();
    let announcedAtMs = performance.now();
    while (this.#operators.length > 0 && !this.stopping.aborted) {
      try {
        if (performance.now() - announcedAtMs >= ANNOUNCE_EVERY_MS) {
          await announceListeners(store, feed);
          announcedAtMs = performance.now();
        }
        await this.#readNew();
      } catch (err) {
        if (mayLog()) logger.warn({ err, feed }, 'feed.read_failed');
      }
      await this.#wait(READ_EVERY_MS);
    }
    this.#kept.clear();
    // No `await` since the last check for listeners: a listener that comes later starts a new read.
    this.#reading = undefined;
  }

  /** Resolves after a time, or when the hub stops. */
  async #wait(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.stopping }).catch(() => undefined);
  }

  /** Reads what is new, page by page. */
  async #readNew(): Promise<void> {
    const { store, feed } = this.#options;
    const kept = this.#kept;
    for (let isFull = true; isFull && !this.stopping.aborted; ) {
      const page = await readFeed(store, feed, kept.end ?? kept.restart(await endOfFeed(store, feed)), MAX_PAGE);
      if (page.isLost) kept.restart(FEED_START);
      else kept.push(this.#toItems(page));
      isFull = page.records.length === MAX_PAGE;
      this.#turns.emit('turn');
    }
  }

  #toItems({ records, hasGap }: FeedPage): FeedItem<T>[] {
    return records.map(({ id, text, dropped }, i) => ({
      id,
      entry: text === undefined ? undefined : this.#options.decode(text),
      dropped: text === undefined || (hasGap && i === 0) ? null : dropped,
    }));
  }
}

/** The newest entries, without a gap between the places `start` and `end`; both are undefined if nothing is known. */
class KeptItems<T> {
  #items: FeedItem<T>[] = [];
  #start: string | undefined;

  get start(): string | undefined {
    return this.#start;
  }

  get end(): string | undefined {
    return this.#items.at(-1)?.id ?? this.#start;
  }

  /** Forgets all, and begins again at a place, which it returns. */
  restart(at: string): string {
    [this.#items, this.#start] = [[], at];
    return at;
  }

  clear(): void {
    [this.#items, this.#start] = [[], undefined];
  }

  push(more: FeedItem<T>[]): void {
    this.#items = [...this.#items, ...more];
    const excess = this.#items.splice(0, Math.max(0, this.#items.length - MAX_KEPT));
    this.#start = excess.at(-1)?.id ?? this.#start;
  }

  /** Returns at most `limit` entries after a place, or undefined if that place is not known here. */
  after(cursor: string, limit: number): FeedItem<T>[] | undefined {
    const at = cursor === this.#start ? 0 : this.#items.findLastIndex(({ id }) => id === cursor) + 1;
    return at === 0 && cursor !== this.#start ? undefined : this.#items.slice(at, at + limit);
  }
}
