/**
 * The directory of all subscriptions, which each console process keeps in memory: searches, filters and sorts them
 * without an index in Redis. It is loaded at its first use. Before each search it reads what has changed since, so a
 * search finds what was stored before it began.
 */
import { type HealthState, type Subscription, type SubscriptionSort, throwRejections } from '@posthorn/core';
import { loadReadable, separate } from '../decode-named.ts';
import { allPrefixes } from '../keys.ts';
import { changeInSlices, filterInSlices, sortInSlices, visitInSlices, walkInSlices } from '../lists/in-slices.ts';
import { type Filter, matches, type Page, type PageRequest } from '../lists/page.ts';
import { oneAfterAnother } from '../redis/one-after-another.ts';
import type { Store } from '../store.ts';
import { loadSubscriptions, type StoredSubscription } from '../subscriptions/subscriptions.ts';
import { createDirectoryIndex } from './directory-index.ts';
import { ORDERS } from './directory-order.ts';
import { type Changes, followPartition, type Listed } from './directory-part.ts';

/** Up to this many matches are sorted; of more, the page is looked for in the sorted list of all. */
const MAX_SORTED = 1_000;

export interface SubscriptionQuery extends Filter<Subscription, 'status' | 'environment'> {
  /** Words that each occur in the url or the description, or begin the id, in upper or lower case. */
  q?: string | undefined;
  health?: HealthState | undefined;
  sort: SubscriptionSort;
}

export interface Directory {
  /** A page of the subscriptions that match, and how many match in all. Throws `BadCursor`. */
  find(query: SubscriptionQuery, request: PageRequest): Promise<Page<StoredSubscription> & { total: number }>;
}

/** Returns the directory of a store. `now` is a monotonic clock in milliseconds. */
export function createDirectory(store: Store, now: () => number = () => performance.now()): Directory {
  const changes: Changes = new Map();
  const partitions = allPrefixes(store).map((prefix) => followPartition(store, prefix, changes, now));
  const index = createDirectoryIndex<Listed>();
  /** All subscriptions in each order that is kept. */
  const lists = new Map<SubscriptionSort, Listed[]>([['newest', []]]);
  /** An order is kept from its first use on. */
  const wanted = new Set<SubscriptionSort>();

  async function update(): Promise<void> {
    throwRejections(await Promise.allSettled(partitions.map((follow) => follow())));
    if (changes.size > 0) await apply();
    for (const sort of wanted) {
      if (!lists.has(sort)) lists.set(sort, await sortInSlices(lists.get('newest') ?? [], ORDERS[sort].compare));
    }
  }

  async function apply(): Promise<void> {
    const removed = [...changes.values()].flatMap(({ before }) => before ?? []);
    const added = [...changes.values()].flatMap(({ after }) => after ?? []);
    for (const [sort, list] of lists) lists.set(sort, await changeInSlices(list, removed, added, ORDERS[sort].compare));
    await visitInSlices(removed, (listed) => index.remove(listed));
    await visitInSlices(added, (listed) => index.add(listed));
    changes.clear();
  }
  const upToDate = oneAfterAnother(update);

  /** The matches from a place on, one more than `limit` if there are as many, and how many there are in all. */
  async function matchesAfter(query: SubscriptionQuery, { limit, cursor }: PageRequest) {
    const { q = '', sort, status, environment, health, ...unused } = query;
    unused satisfies Record<string, never>;
    const { compare, fromCursor } = ORDERS[sort];
    const after = cursor === undefined ? undefined : fromCursor(cursor);
    const words = q
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== '');
    const values = { status, environment, health };
    const isMatch = (listed: Listed) => matches(listed, values) && words.every((word) => hasWord(listed, word));
    wanted.add(sort);
    await upToDate();
    // Until something is awaited the index does not change: the next update begins later.
    const count = words.length > 0 ? undefined : index.count(values);
    const candidates = count === undefined || count <= MAX_SORTED ? index.find(values, words) : undefined;
    const found = candidates && (await filterInSlices(candidates, isMatch));
    if (found && found.length <= MAX_SORTED) {
      const next = after === undefined ? found : found.filter((listed) => compare(after, listed) < 0);
      return { next: next.sort(compare).slice(0, limit + 1), total: found.length };
    }
    const seen = new Set<string>();
    const isNew = (listed: Listed) => isMatch(listed) && seen.size < seen.add(listed.id).size;
    const next = await walkInSlices(() => lists.get(sort) ?? [], after, compare, isNew, limit + 1);
    return { next, total: found?.length ?? count ?? 0 };
  }

  return {
    async find(query, request) {
      const { next, total } = await matchesAfter(query, request);
      const { limit, leaveOutUnreadable = false } = request;
      const last = next.length > limit ? next[limit - 1] : undefined;
      const ids = next.slice(0, limit).map(({ id }) => id);
      const load = (some: string[]) => loadSubscriptions(store, some);
      const { items, unreadable } = separate(await (leaveOutUnreadable ? loadReadable(load, ids) : load(ids)));
      const { sort, status, environment } = query;
      return {
        // One that has just changed may not match any more.
        items: items.filter((found) => matches(found, { status, environment })),
        nextCursor: last ? ORDERS[sort].toCursor(last) : null,
        unreadable,
        total,
      };
    },
  };
}

/**
 * Whether a word occurs in the url or the description, or begins the id or what follows `sub_` in it. Anywhere else in
 * an id it would be there by chance: about six of 10,000 ids contain a given word of three letters.
 */
function hasWord({ text }: Listed, word: string): boolean {
  const first = text.indexOf(word);
  const id = text.lastIndexOf('\n') + 1;
  if (first < id) return first >= 0;
  return first === id || text.startsWith(word, text.indexOf('_', id) + 1);
}
