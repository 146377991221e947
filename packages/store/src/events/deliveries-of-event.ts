/**
 * Loads the deliveries of one stored event, with their replays, without an index: their ids follow from the event and
 * its subscriptions.
 */
import { deliveryId, type EventRef } from '@posthorn/core';
import { loadReadable, separate, type UnreadableRecord } from '../decode-named.ts';
import { loadDeliveries, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { replaysOf } from '../replays/replays.ts';
import type { Store } from '../store.ts';
import type { StoredEvent } from './event-record.ts';

/**
 * At most `limit` deliveries: subscription by subscription, the first delivery and then its replays. `hasMore`: there
 * may be more. To be shown: those that can't be read are in `unreadable`.
 */
export async function deliveriesOfEvent(
  store: Store,
  { ref, subscriptionIds }: Pick<StoredEvent, 'ref' | 'subscriptionIds'>,
  limit: number,
): Promise<{ deliveries: StoredDelivery[]; unreadable: UnreadableRecord[]; hasMore: boolean }> {
  const looked = subscriptionIds.slice(0, limit);
  const all = await deliveryIdsOf(store, ref, looked);
  const load = (ids: string[]) => loadDeliveries(store, ids);
  const { items: deliveries, unreadable } = separate(await loadReadable(load, all.slice(0, limit)));
  return { deliveries, unreadable, hasMore: all.length > limit || looked.length < subscriptionIds.length };
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
