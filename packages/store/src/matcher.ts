/** Matches events to subscriptions in memory. The script that stores an event checks that what was read is still current. */
import type { Environment, EventType } from '@posthorn/core';
import { encodeKind } from './event-record.ts';
import { findMatches } from './events.ts';
import { allPrefixes, topicsVersionKey } from './keys.ts';
import type { Store } from './store.ts';

/**
 * What was read is read again after this. It bounds how long a change goes unnoticed whose process died before it had
 * told all partitions.
 */
const MAX_AGE_MS = 1_000;
/** A longer result is not kept: reading it costs little compared with the deliveries of its event. */
const MAX_KEPT_IDS = 1_000;

/** The subscriptions that an event matches, with the version of the topics in each partition from before they were read. */
export interface Match {
  readonly subscriptionIds: readonly string[];
  readonly versions: readonly string[];
}

export type Matcher = ReturnType<typeof createMatcher>;

/** A matcher of one process. `now` is in milliseconds since any fixed moment. */
export function createMatcher(store: Store, now: () => number = () => performance.now()) {
  // By the number of an event's type and environment.
  const kept = new Map<number, { match: Match; readAtMs: number }>();
  const reading = new Map<number, Promise<Match>>();

  const read = async (event: { type: EventType; environment: Environment }, key: number): Promise<Match> => {
    const readAtMs = now();
    // The versions first: a change raises them last.
    const versions = await readVersions(store);
    const match = { versions, subscriptionIds: await findMatches(store, event) };
    if (match.subscriptionIds.length <= MAX_KEPT_IDS) kept.set(key, { match, readAtMs });
    return match;
  };

  return {
    /**
     * What an event matches, as read within the last second: at once, or a promise where it has to be read.
     * `storeEvent` refuses it where it is outdated; then pass it as `outdated`, and it is read again. Rejects with the
     * error of Redis.
     */
    match(event: { type: EventType; environment: Environment }, outdated?: Match): Match | Promise<Match> {
      const key = encodeKind(event);
      const known = kept.get(key);
      if (known && known.match !== outdated && now() - known.readAtMs < MAX_AGE_MS) return known.match;
      const shared = reading.get(key);
      if (shared) return shared;
      const fresh = read(event, key).finally(() => reading.delete(key));
      reading.set(key, fresh);
      return fresh;
    },
  };
}

/** The version of the topics in each partition. It changes when a subscription begins or stops to listen on a topic. */
async function readVersions(store: Store): Promise<string[]> {
  const versions = await Promise.all(allPrefixes(store).map((prefix) => store.redis.get(topicsVersionKey(prefix))));
  return versions.map((version) => version ?? '0');
}

/**
 * The partition whose version of the topics is checked for the events of a partition: in a Redis Cluster their own one,
 * otherwise the first one for all, so that a script with events of several partitions reads it once.
 */
export function topicsPartitionOf({ spansPartitions }: Store, partition: number): number {
  return spansPartitions ? 0 : partition;
}

/**
 * Tells the other partitions that the topics of a subscription were changed; its own partition knows from the script
 * that changed it. Whichever `topicsPartitionOf` returns, once this resolves every later event sees the change.
 */
export async function announceTopics(store: Store, changedPrefix: string): Promise<void> {
  const others = allPrefixes(store).filter((prefix) => prefix !== changedPrefix);
  await Promise.all(others.map((prefix) => store.redis.incr(topicsVersionKey(prefix))));
}
