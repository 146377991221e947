/**
 * The directory of all subscriptions, which each console process keeps in memory: searches, filters and sorts them without an index in Redis.
 * It is loaded at its first use. Before each search it reads what has changed since, so a search finds what was stored before it began.
 */
import { type HealthState, SUBSCRIPTION_ID, type Subscription, type SubscriptionSort } from '@posthorn/core';
import { type Changes, followPartition, type Listed } from './directory-part.ts';
import { mergeInTurns, sortInTurns, visitInTurns } from './in-turns.ts';
import { allPrefixes, prefixOfSubscription, subscriptionKey } from './keys.ts';
import {
  BadCursor,
  decodeCursor,
  encodeCursor,
  type Filter,
  matches,
  newestFirst,
  type Page,
  type PageRequest,
} from './page.ts';
import type { Store } from './store.ts';
import { loadSubscriptions, type StoredSubscription } from './subscriptions.ts';

export interface SubscriptionQuery extends Filter<Subscription, 'status' | 'environment'> {
  /** Words that each occur in the url, the description or the id, in upper or lower case. */
  q?: string | undefined;
  health?: HealthState | undefined;
  sort: SubscriptionSort;
}

export interface Directory {
  /** A page of the subscriptions that match, and how many match in all. Throws `BadCursor`. */
  find(query: SubscriptionQuery, request: PageRequest): Promise<Page<StoredSubscription> & { total: number }>;
}

/** Characters of an address that count for its place in the list; a cursor contains them. */
const MAX_URL_KEY = 120;

/** An order of the list, and the cursors of places in it. */
interface Order {
  compare(a: Place, b: Place): number;
  toCursor(place: Place): string;
  fromCursor(cursor: string): Place;
}
type Place = Pick<Listed, 'id' | 'text' | 'createdAtMs' | 'severity' | 'failingSinceMs'>;

/** What a cursor does not say of its place, because its order does not need it. */
const NOWHERE = { text: '', createdAtMs: 0, severity: 0, failingSinceMs: 0 };

const ORDERS: Record<SubscriptionSort, Order> = {
  newest: {
    compare: compareCreation,
    toCursor: ({ id, createdAtMs }) => encodeCursor({ ms: createdAtMs, id }),
    fromCursor(cursor) {
      const { ms, id } = decodeCursor(cursor, SUBSCRIPTION_ID);
      return { ...NOWHERE, id, createdAtMs: ms };
    },
  },
  url: {
    compare(a, b) {
      const [x, y] = [urlKey(a), urlKey(b)];
      return x < y ? -1 : x > y ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
    },
    toCursor: (place) => Buffer.from(`${place.id} ${urlKey(place)}`).toString('base64url'),
    fromCursor(cursor) {
      const [, id = '', key = ''] = /^(\S+) (.*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
      if (!SUBSCRIPTION_ID.test(id)) throw new BadCursor('Not a cursor of this list');
      return { ...NOWHERE, id, text: `//${key}` };
    },
  },
  worst: {
    compare: (a, b) => b.severity - a.severity || a.failingSinceMs - b.failingSinceMs || compareCreation(a, b),
    toCursor({ id, createdAtMs, severity, failingSinceMs }) {
      return Buffer.from(`${severity} ${failingSinceMs} ${createdAtMs} ${id}`).toString('base64url');
    },
    fromCursor(cursor) {
      const text = Buffer.from(cursor, 'base64url').toString();
      const [, severity, failingSince, createdAt, id = ''] = /^(\d{1,2}) (\d{1,15}) (\d{1,15}) (\S+)$/.exec(text) ?? [];
      if (!SUBSCRIPTION_ID.test(id)) throw new BadCursor('Not a cursor of this list');
      return {
        id,
        text: '',
        createdAtMs: Number(createdAt),
        severity: Number(severity),
        failingSinceMs: Number(failingSince),
      };
    },
  },
};

function compareCreation(a: Place, b: Place): number {
  return newestFirst({ ms: a.createdAtMs, id: a.id }, { ms: b.createdAtMs, id: b.id });
}

/** The beginning of an address without its scheme. */
function urlKey({ text }: Place): string {
  const start = text.indexOf('//') + 2;
  return text.slice(start, start + MAX_URL_KEY);
}

/** Returns the directory of a store. `now` is a monotonic clock in milliseconds. */
export function createDirectory(store: Store, now: () => number = () => performance.now()): Directory {
  const changes: Changes = new Map();
  const partitions = allPrefixes(store).map((prefix) => followPartition(store, prefix, changes, now));
  /** Each list is replaced, never changed, so a search that goes on in turns keeps its own. */
  const lists = new Map<SubscriptionSort, readonly Listed[]>([['newest', []]]);
  /** An order is kept from its first use on. */
  const wanted = new Set<SubscriptionSort>();

  async function update(): Promise<void> {
    const results = await Promise.allSettled(partitions.map((follow) => follow()));
    const failure = results.find((result) => result.status === 'rejected');
    if (failure) throw failure.reason;
    if (changes.size > 0) await apply();
    for (const sort of wanted) {
      if (!lists.has(sort)) lists.set(sort, await sortInTurns(lists.get('newest') ?? [], ORDERS[sort].compare));
    }
  }

  async function apply(): Promise<void> {
    const present = [...changes.values()].filter((listed) => listed !== undefined);
    const updated = await Promise.all(
      Array.from(lists, async ([sort, list]) => {
        const { compare } = ORDERS[sort];
        const fresh = await sortInTurns(present, compare);
        return [sort, await mergeInTurns(list, fresh, compare, ({ id }) => changes.has(id))] as const;
      }),
    );
    for (const [sort, list] of updated) lists.set(sort, list);
    changes.clear();
  }
  const upToDate = oneAfterAnother(update);

  async function listIn(sort: SubscriptionSort): Promise<readonly Listed[]> {
    wanted.add(sort);
    await upToDate();
    return lists.get(sort) ?? [];
  }

  return {
    async find({ q = '', sort, status, environment, health }, { limit, cursor }) {
      const order = ORDERS[sort];
      const after = cursor === undefined ? undefined : order.fromCursor(cursor);
      const words = q.toLowerCase().split(/\s+/);
      const isWanted = (listed: Listed) =>
        (status === undefined || status === listed.status) &&
        (environment === undefined || environment === listed.environment) &&
        (health === undefined || health === listed.health) &&
        words.every((word) => listed.text.includes(word));
      const page: Listed[] = [];
      let total = 0;
      await visitInTurns(await listIn(sort), (listed) => {
        if (!isWanted(listed)) return;
        total += 1;
        const isNext = page.length <= limit && (after === undefined || order.compare(after, listed) < 0);
        if (isNext) page.push(listed);
      });
      const last = page.length > limit ? page[limit - 1] : undefined;
      const loaded = await loadSubscriptions(
        store,
        page.slice(0, limit).map(({ id }) => id),
      );
      // One that has just changed may not match any more.
      const items = loaded
        .filter((found) => found !== undefined)
        .filter((found) => matches(found, { status, environment }));
      return { items, nextCursor: last ? order.toCursor(last) : null, total };
    },
  };
}

/** Returns a function that resolves after a run of `work` which began after the call. Runs never overlap; waiting calls share the next one. */
function oneAfterAnother(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  return () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      const run = work();
      // Those who wait get the error; the next run only waits for the end.
      running = run.catch(() => undefined);
      return run;
    });
    return waiting;
  };
}

/** The url and the description of a subscription. */
export interface SubscriptionName {
  id: string;
  url: string;
  description: string;
}

/** The names of these subscriptions, in the order of the ids, without those that do not exist. */
export async function readNames(store: Store, ids: readonly string[]): Promise<SubscriptionName[]> {
  const names = await Promise.all(
    ids.map(async (id) => {
      const key = subscriptionKey(prefixOfSubscription(store, id), id);
      const [url, description] = await store.redis.hmget(key, 'url', 'description');
      return url ? { id, url, description: description ?? '' } : undefined;
    }),
  );
  return names.filter((name) => name !== undefined);
}
