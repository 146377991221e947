/**
 * Loads the deliveries of one stored event, with their replays, without an index: their ids follow from the event and
 * its subscriptions.
 */
import { deliveryId, type EventRef } from '@posthorn/core';
import { loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { replaysOf } from '../replays/replays.ts';
import type { Store } from '../store.ts';
import type { StoredEvent } from './event-record.ts';

/**
 * At most `limit` deliveries: subscription by subscription, the first delivery and then its replays. `hasMore`: there
 * may be more.
 */
export async function deliveriesOfEvent(
  store: Store,
  { ref, subscriptionIds }: Pick<StoredEvent, 'ref' | 'subscriptionIds'>,
  limit: number,
): Promise<{ deliveries: StoredDelivery[]; hasMore: boolean }> {
  const looked = subscriptionIds.slice(0, limit);
  const all = await deliveryIdsOf(store, ref, looked);
  const deliveries = await loadExisting(store, all.slice(0, limit));
  return { deliveries, hasMore: all.length > limit || looked.length < subscriptionIds.length };
}

/**
 * The ids of the deliveries of an event to some of its subscriptions: of each, that of the first and of its replays.
 */
export async function deliveryIdsOf(
  store: Store,
  ref: EventRef,
  subscriptionIds: readonly string[],
): Promise<string[]> {
  const ids = await Promise.all(
    subscriptionIds.map(async (id) => [deliveryId(ref, id), ...(await replaysOf(store, ref, id)).map((one) => one.id)]),
  );
  return ids.flat();
}
