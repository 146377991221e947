/**
 * Matches events to subscriptions in memory. The script that stores an event checks that what was read is still
 * current.
 */
import { randomInt } from 'node:crypto';
import { type Environment, type EventType, StorageUnavailable } from '@posthorn/core';
import { allPrefixes, topicsVersionKey } from '../keys.ts';
import { withCircuitBreaker } from '../redis/circuit-breaker.ts';
import type { Store } from '../store.ts';
import { encodeKind } from './event-record.ts';
import { findMatches } from './events.ts';

/**
 * The versions are read again after this. It bounds how long a change goes unnoticed whose process died before it had
 * told all partitions.
 */
const MAX_AGE_MS = 1_000;
/** A longer result is not kept: reading it costs little compared with the deliveries of its event. */
const MAX_KEPT_IDS = 1_000;

/** The version of topics of which Redis has none. */
const NEVER_CHANGED = '0';

/**
 * The subscriptions that an event matches, with the version of the topics in each partition from before they were read.
 */
export interface Match {
  readonly subscriptionIds: readonly string[];
  readonly versions: readonly string[];
}

export type Matcher = ReturnType<typeof createMatcher>;

/** A matcher of one process. `now` is in milliseconds since any fixed moment. */
export function createMatcher(store: Store, now: () => number = () => performance.now()) {
  // By the number of an event's type and environment.
  const kept = new Map<number, Match>();
  const reading = new Map<number, Promise<Match>>();
  let current: readonly string[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  let readingVersions: Promise<readonly string[]> | undefined;

  const readCurrent = async (): Promise<readonly string[]> => {
    const startedAtMs = now();
    const versions = await readVersions(store, current);
    // No version is ever removed: what has lost one may have lost the subscriptions too.
    if (versions.some((version, partition) => version === NEVER_CHANGED && version !== (current[partition] ?? version)))
      store.format.doubt();
    if (versions.some((version, partition) => version !== current[partition])) current = versions;
    readAtMs = startedAtMs;
    return current;
  };

  const isCurrent = ({ versions }: Match) => versions === current && now() - readAtMs < MAX_AGE_MS;

  const read = async (event: { type: EventType; environment: Environment }, key: number, outdated?: Match) => {
    readingVersions ??= readCurrent().finally(() => {
      readingVersions = undefined;
    });
    // The versions first: a change renews them last.
    const versions = await readingVersions;
    const known = kept.get(key);
    if (known?.versions === versions && known !== outdated) return known;
    const match = { versions, subscriptionIds: await findMatches(store, event) };
    if (match.subscriptionIds.length <= MAX_KEPT_IDS) kept.set(key, match);
    return match;
  };

  return {
    /**
     * What an event matches, as the topics were within the last second: at once, or a promise where it has to be read.
     * `storeEvent` refuses it where it is outdated; then pass it as `outdated`, and it is read again. Rejects with the
     * error of Redis.
     */
    match(event: { type: EventType; environment: Environment }, outdated?: Match): Match | Promise<Match> {
      const key = encodeKind(event);
      const known = kept.get(key);
      if (known && known !== outdated && isCurrent(known)) return known;
      const shared = reading.get(key);
      if (shared) return shared;
      const fresh = read(event, key, outdated).finally(() => reading.delete(key));
      reading.set(key, fresh);
      return fresh;
    },
  };
}

/**
 * The version of the topics in each partition. It changes when a subscription begins or stops to listen on a topic, and
 * is never the same again. A partition of a Cluster that does not reply has the version of `before`, if that is known:
 * nothing changes there, and what changes elsewhere is told to all.
 */
export async function readVersions(store: Store, before: readonly string[] = []): Promise<string[]> {
  const prefixes = allPrefixes(store);
  const read = (prefix: string, partition: number) =>
    withCircuitBreaker(store, prefix, () => store.redis.get(topicsVersionKey(prefix))).catch((error: unknown) => {
      const known = before[partition];
      if (known === undefined || !(error instanceof StorageUnavailable)) throw error;
      return known;
    });
  const versions = store.spansPartitions
    ? await store.redis.mget(prefixes.map(topicsVersionKey))
    : await Promise.all(prefixes.map(read));
  return versions.map((version) => version ?? NEVER_CHANGED);
}

/**
 * The partition whose version of the topics is checked for the events of a partition: in a Redis Cluster their own one,
 * otherwise the first one for all, so that a script with events of several partitions reads it once.
 */
export function topicsPartitionOf({ spansPartitions }: Store, partition: number): number {
  return spansPartitions ? 0 : partition;
}

/**
 * What a change adds to the version of the topics. Random: a count would reach a value again that was read with other
 * topics, after a failover that lost a change.
 */
export function topicsStep(): number {
  return randomInt(1, 2 ** 40);
}

/**
 * Tells the other partitions that the topics of a subscription were changed; its own partition knows from the script
 * that changed it. Whichever `topicsPartitionOf` returns, once this resolves every later event sees the change. Adds to
 * the versions: a command that is sent again after a lost reply must not bring back an earlier one.
 */
export async function announceTopics(store: Store, changedPrefix: string): Promise<void> {
  const others = allPrefixes(store).filter((prefix) => prefix !== changedPrefix);
  await Promise.all(others.map((prefix) => store.redis.incrby(topicsVersionKey(prefix), topicsStep())));
}
