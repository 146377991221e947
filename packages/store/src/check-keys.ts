/** Refuses a key prefix under which another program keeps its data. */
import { DELIVERY_STATUSES, StartError, SUBSCRIPTION_STATUSES } from '@posthorn/core';
import {
  auditKey,
  byStatusKey,
  closingKey,
  fanningOutKey,
  installationKey,
  laneIndexKey,
  maintenanceKey,
  noticesKey,
  notifierKey,
  partitionBase,
  replayingKey,
  replaysKey,
  replicatedKey,
  subscriptionsKey,
  workersKey,
  workersSeenKey,
} from './keys.ts';
import type { Store } from './store.ts';

/** The keys whose names are known beforehand, with the type that Redis must report for them. */
function fixedKeys({ prefix, partitions }: Store): [key: string, type: string][] {
  const ofPartition = (base: string): [string, string][] => [
    [fanningOutKey(base), 'zset'],
    ...DELIVERY_STATUSES.map((status): [string, string] => [byStatusKey(base, status), 'zset']),
    ...SUBSCRIPTION_STATUSES.map((status): [string, string] => [subscriptionsKey(base, status), 'zset']),
    [laneIndexKey(base, 'held'), 'set'],
    [laneIndexKey(base, 'parked'), 'set'],
    [closingKey(base), 'set'],
    [maintenanceKey(base), 'string'],
    [notifierKey(base), 'string'],
    [replicatedKey(base), 'string'],
    [replaysKey(base), 'zset'],
    [replayingKey(base), 'set'],
    [auditKey(base), 'stream'],
    [noticesKey(base), 'stream'],
  ];
  const first = partitionBase(prefix, 0);
  return [
    [installationKey(prefix), 'hash'],
    [workersKey(first), 'hash'],
    [workersSeenKey(first), 'zset'],
    ...Array.from({ length: partitions }, (_, partition) => ofPartition(partitionBase(prefix, partition))).flat(),
  ];
}

/** Throws `StartError` naming a key that exists with another type than Posthorn's: every command on it would fail. */
export async function checkKeys(store: Store): Promise<void> {
  const found = await Promise.all(
    fixedKeys(store).map(async ([key, type]) => ({ key, type, actual: await store.redis.type(key) })),
  );
  for (const { key, type, actual } of found) {
    if (actual === 'none' || actual === type) continue;
    throw new StartError(
      `The key "${key}" in Redis is a ${actual}, but Posthorn keeps a ${type} there, so another program uses KEY_PREFIX "${store.prefix}". ` +
        `Choose another KEY_PREFIX, or remove the key if nobody needs it (redis-cli DEL '${key}').`,
    );
  }
}
