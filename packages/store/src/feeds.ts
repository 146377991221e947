/** Live feeds for operators: streams that processes write to only while a console has listeners, in batches. */
import type { Attempt, DeliveryStatus, Environment, EventRef, EventType } from '@posthorn/core';
import { listeningKey, partitionPrefix, publishedKey, tailingKey, tailKey } from './keys.ts';
import { execAll } from './redis/exec-all.ts';
import type { Store } from './store.ts';

/** How long processes write after a console last said that it has listeners. */
const WATCHED_MS = 10_000;
/** A stream ends this long after its last entry, and after its last listener. */
const FEED_LIFE_MS = 60_000;
/** The interval of a writer while somebody watches. */
const WRITE_EVERY_MS = 250;
/** The interval in which it reads whether anyone watches, and the same in calls while somebody does. */
const LOOK_EVERY_MS = 2_000;
const LOOK_EVERY_CALLS = LOOK_EVERY_MS / WRITE_EVERY_MS;
/** So long after a listener was announced, writers know of it, and write all that happens from then on. */
export const WRITERS_KNOW_AFTER_MS = LOOK_EVERY_MS + WRITE_EVERY_MS;
/** The most entries that one process writes in a call, 500 a second. Those beyond are counted and left out. */
const MAX_IN_CALL = 125;
/** Of these, ordinary entries leave this many to preferred ones: failures are seldom, and what operators look for. */
const FOR_PREFERRED = 25;

/** `attempts`: every attempt that was recorded. `sandbox_events`: every new event of the sandbox. */
export type Feed = 'attempts' | 'sandbox_events';

/**
 * A feed's key while it has listeners, its stream, and the entries that the stream keeps: for a listener that was
 * disconnected.
 */
const FEEDS = {
  attempts: { watchedKey: tailingKey, streamKey: tailKey, maxEntries: 10_000 },
  sandbox_events: { watchedKey: listeningKey, streamKey: publishedKey, maxEntries: 1_000 },
} as const;

const keysOf = (store: Store, feed: Feed) => {
  const prefix = partitionPrefix(store, 0);
  return { watched: FEEDS[feed].watchedKey(prefix), stream: FEEDS[feed].streamKey(prefix) };
};

interface FeedRecord {
  /** Its place in the stream. */
  id: string;
  /** What the writer wrote; undefined where the first listener came, because nothing was written before. */
  text: string | undefined;
  /** Entries that the same writer left out just before it: there were too many. */
  dropped: number;
}

export interface FeedPage {
  records: FeedRecord[];
  /** Between `afterId` and the first record, others may be missing. */
  hasGap: boolean;
  /**
   * The stream has nothing at or after `afterId`: it ended, or another Redis has taken over. Read from the beginning.
   */
  isLost: boolean;
}

/** The text of the entry that says that the first listener came. */
const BEGINNING = '';

/** The place before the first entry of any stream. */
export const FEED_START = '0-0';

/**
 * Says that a console has listeners; to be repeated within 10 s. If nobody listened before, adds an entry without text:
 * nothing was written before it.
 */
export async function announceListeners(store: Store, feed: Feed): Promise<void> {
  const { watched, stream } = keysOf(store, feed);
  const isFirst = (await store.redis.set(watched, 1, 'PX', WATCHED_MS, 'NX')) === 'OK';
  if (isFirst) await append(store, feed, [BEGINNING], 0);
  else await execAll(store.redis.multi().pexpire(watched, WATCHED_MS).pexpire(stream, FEED_LIFE_MS));
}

/** Resolves with at most `limit` entries after a place in the stream, the oldest first. */
export async function readFeed(store: Store, feed: Feed, afterId: string, limit: number): Promise<FeedPage> {
  const found = await store.redis.xrange(keysOf(store, feed).stream, afterId, '+', 'COUNT', limit + 1);
  const isThere = found[0]?.[0] === afterId;
  const records = (isThere ? found.slice(1) : found.slice(0, limit)).map(([id, [, text = '', , dropped]]) => ({
    id,
    text: text === BEGINNING ? undefined : text,
    dropped: Number(dropped),
  }));
  const isStart = afterId === FEED_START;
  return { records, hasGap: !isThere && !isStart, isLost: found.length === 0 && !isStart };
}

/** Resolves with the place of the newest entry. */
export async function endOfFeed(store: Store, feed: Feed): Promise<string> {
  const [newest] = await store.redis.xrevrange(keysOf(store, feed).stream, '+', '-', 'COUNT', 1);
  return newest?.[0] ?? FEED_START;
}

/** Collects what a process writes to a feed. */
interface FeedWriter {
  /** Whether anyone watches, as last read. If not, `add` must not be called. */
  isWatched(): boolean;
  /** Notes an entry. If there are too many, `preferred` ones are left out last. */
  add(text: string, preferred: boolean): void;
  /** Returns after how many milliseconds `write` is to be called again. */
  everyMs(): number;
  /** Writes what was noted, in one command. */
  write(): Promise<void>;
}

/** A writer costs one read every 2 s while nobody watches. What it can't write is counted, and lost. */
export function createFeedWriter(store: Store, feed: Feed): FeedWriter {
  let calls = 0;
  let isWatched = false;
  let texts: string[] = [];
  let dropped = 0;
  return {
    isWatched: () => isWatched,
    everyMs: () => (isWatched ? WRITE_EVERY_MS : LOOK_EVERY_MS),
    add(text, preferred) {
      if (texts.length < (preferred ? MAX_IN_CALL : MAX_IN_CALL - FOR_PREFERRED)) texts.push(text);
      else dropped += 1;
    },
    async write() {
      if (!isWatched || ++calls % LOOK_EVERY_CALLS === 0) {
        isWatched = (await store.redis.exists(keysOf(store, feed).watched)) === 1;
      }
      if (texts.length === 0) {
        if (!isWatched) dropped = 0;
        return;
      }
      const [written, left] = [texts, dropped];
      [texts, dropped] = [[], 0];
      try {
        await append(store, feed, written, left);
      } catch (error) {
        dropped += written.length + left;
        throw error;
      }
    },
  };
}

async function append(store: Store, feed: Feed, texts: string[], dropped: number): Promise<void> {
  const { stream } = keysOf(store, feed);
  const all = store.redis.multi();
  for (const [i, text] of texts.entries())
    all.xadd(stream, 'MAXLEN', '~', FEEDS[feed].maxEntries, '*', 'e', text, 'd', i === 0 ? dropped : 0);
  await execAll(all.pexpire(stream, FEED_LIFE_MS));
}

/** An attempt as it is shown live. */
interface TailEntry extends Attempt {
  deliveryId: string;
  eventId: string;
  eventType: EventType;
  environment: Environment;
  subscriptionId: string;
  /** The delivery's status after it. */
  status: DeliveryStatus;
}

export function encodeTailEntry(entry: TailEntry): string {
  return JSON.stringify(entry);
}

export function decodeTailEntry(text: string): TailEntry {
  return JSON.parse(text) as TailEntry;
}

/** A new event of the sandbox. Its content stays where it is stored, so that it ends with it. */
export interface PublishedEntry {
  ref: EventRef;
  eventType: EventType;
}

export function encodePublished(entry: PublishedEntry): string {
  return JSON.stringify(entry);
}

export function decodePublished(text: string): PublishedEntry {
  return JSON.parse(text) as PublishedEntry;
}
