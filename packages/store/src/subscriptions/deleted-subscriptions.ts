/** Deleted subscriptions: finds what is left of them, and clears them away. */
import { deliveryIdPrefix, isFinished } from '@posthorn/core';
import { keptWhileUnfinishedMs, loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { byStatusKey, closingKey, partitionPrefix, prefixOfSubscription, subscriptionKey } from '../keys.ts';
import { pairs } from '../lists/sorted-set.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';

/** Subscriptions of a partition that were deleted and still have something to clear. */
export async function closingSubscriptions(store: Store, partition: number): Promise<string[]> {
  return await store.redis.smembers(closingKey(partitionPrefix(store, partition)));
}

/** Entries of an index that one command looks at. */
const SCAN_CHUNK = 500;
/** In the order in which a delivery moves on: one that moves meanwhile is found later, or was found before. */
const UNFINISHED = ['held', 'pending', 'waiting_for_retry'] as const;

/**
 * The unfinished deliveries of a subscription, in no order, by chunk of the indexes that one command looks at: a chunk
 * may be empty. A delivery may be in several chunks.
 */
export async function* unfinishedDeliveries(store: Store, subscriptionId: string): AsyncGenerator<StoredDelivery[]> {
  const prefix = prefixOfSubscription(store, subscriptionId);
  const pattern = `${deliveryIdPrefix(subscriptionId)}*`;
  for (const key of UNFINISHED.map((status) => byStatusKey(prefix, status))) {
    let cursor = '0';
    do {
      const [next, found] = await store.redis.zscan(key, cursor, 'MATCH', pattern, 'COUNT', SCAN_CHUNK);
      const deliveries = await loadExisting(
        store,
        pairs(found).map(([id]) => id),
      );
      yield deliveries.filter((one) => one.subscriptionId === subscriptionId && !isFinished(one.status));
      cursor = next;
    } while (cursor !== '0');
  }
}

/**
 * What tells a deletion of a subscription from others, since one may be created again under its key; undefined if it is
 * not deleted.
 */
export async function deletionOf(store: Store, id: string): Promise<string | undefined> {
  const key = subscriptionKey(prefixOfSubscription(store, id), id);
  return (await store.redis.hget(key, 'deletion')) ?? undefined;
}

/**
 * Clears away a subscription whose deliveries have all ended since this deletion. What retention keeps of them expires
 * by itself. Changes nothing if it comes too late.
 */
export async function clearDeletedSubscription(store: Store, id: string, deletion: string | undefined): Promise<void> {
  const values = { id, deletion, lifeMs: keptWhileUnfinishedMs(store) };
  await runScript(store, 'clearDeleted', prefixOfSubscription(store, id), values);
}
