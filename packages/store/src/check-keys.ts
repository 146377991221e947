/** Refuses a key prefix that another program uses. */
import { DELIVERY_STATUSES, StartError, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import * as keys from './keys.ts';
import type { Store } from './store.ts';

/** Those of BullMQ's keys in a partition that it uses for all jobs. */
const QUEUE_KEYS: readonly [name: string, type: string][] = [
  ['wait', 'list'],
  ['paused', 'list'],
  ['active', 'list'],
  ['prioritized', 'zset'],
  ['delayed', 'zset'],
  ['failed', 'zset'],
  ['completed', 'zset'],
  ['marker', 'zset'],
  ['stalled', 'set'],
  ['stalled-check', 'string'],
  ['pc', 'string'],
  ['meta', 'hash'],
  ['events', 'stream'],
];

/** The keys whose names are known beforehand, with the type that Redis must report for them. */
function fixedKeys(store: Store): [key: string, type: string][] {
  const ofPartition = (prefix: string): [string, string][] => [
    [keys.fanningOutKey(prefix), 'zset'],
    [keys.succeededKey(prefix), 'stream'],
    ...DELIVERY_STATUSES.map((status): [string, string] => [keys.byStatusKey(prefix, status), 'zset']),
    ...SUBSCRIPTION_STATUSES.flatMap((status) => keys.subscriptionsKeys(prefix, status)).map(
      (key): [string, string] => [key, 'zset'],
    ),
    ...keys.LANES.map((lane): [string, string] => [keys.laneIndexKey(prefix, lane), 'set']),
    [keys.resumingKey(prefix), 'set'],
    [keys.closingKey(prefix), 'set'],
    [keys.leaseKey(prefix, 'maintenance'), 'string'],
    [keys.leaseKey(prefix, 'notifier'), 'string'],
    [keys.replicatedKey(prefix), 'string'],
    [keys.workingKey(prefix), 'hash'],
    [keys.workingCheckedKey(prefix), 'string'],
    [keys.topicsVersionKey(prefix), 'string'],
    [keys.begunKey(prefix), 'string'],
    [keys.replaysKey(prefix), 'zset'],
    [keys.failingKey(prefix), 'zset'],
    [keys.activeReplaysKey(prefix), 'set'],
    [keys.activeBatchesKey(prefix), 'set'],
    [keys.auditKey(prefix), 'stream'],
    [keys.noticesKey(prefix), 'stream'],
    [keys.noticesDroppedKey(prefix), 'string'],
    [keys.subscriptionChangesKey(prefix), 'stream'],
  ];
  const first = keys.partitionPrefix(store, 0);
  return [
    [keys.installationKey(store.prefix), 'hash'],
    [keys.erasuresKey(first), 'zset'],
    [keys.openErasuresKey(first), 'set'],
    [keys.workersKey(first), 'hash'],
    [keys.reachedKey(first), 'zset'],
    [keys.tailingKey(first), 'string'],
    [keys.tailKey(first), 'stream'],
    [keys.listeningKey(first), 'string'],
    [keys.publishedKey(first), 'stream'],
    [keys.workersSeenKey(first), 'zset'],
    ...keys.allPrefixes(store).flatMap(ofPartition),
  ];
}

function queueKeys(store: Store): [key: string, type: string][] {
  return keys
    .allPrefixes(store)
    .flatMap((prefix) => QUEUE_KEYS.map(([name, type]): [string, string] => [keys.queueKey(prefix, name), type]));
}

/**
 * Throws `StartError` naming a key that exists with another type than Posthorn's: every command on it would fail.
 * Returns whether none of these keys exists, except BullMQ's: a process that starts at the same time has some already.
 */
export async function checkKeys(store: Store): Promise<{ isEmpty: boolean }> {
  const own = fixedKeys(store);
  const expected = [...own, ...queueKeys(store)];
  const types = await Promise.all(expected.map(([key]) => store.redis.type(key)));
  for (const [i, [key, type]] of expected.entries()) {
    const actual = types[i];
    if (actual === 'none' || actual === type) continue;
    // With another prefix, an installation would begin again without its data.
    const advice =
      types[0] === 'hash'
        ? `so another program has written it. Keep KEY_PREFIX, and move the key away: redis-cli -c RENAME '${key}' '${movedName(key)}'.`
        : `so another program uses KEY_PREFIX "${store.prefix}". ` +
          `Choose another KEY_PREFIX, or remove the key if nobody needs it (redis-cli DEL '${key}').`;
    throw new StartError(`The key "${key}" in Redis is a ${actual}, but Posthorn keeps a ${type} there, ${advice}`);
  }
  return { isEmpty: types.slice(0, own.length).every((type) => type === 'none') };
}

/** A name for a key that is moved away. It has the same hash tag: a Cluster renames no key to one of another slot. */
function movedName(key: string): string {
  return `${key.includes('{') ? key : `{${key}}`}:moved`;
}
