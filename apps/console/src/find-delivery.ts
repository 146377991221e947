/** What the routes of deliveries share: how they find one, and which ones a filter names. */
import type { tryNowSchema } from '@posthorn/operator-api';
import { type DeliveryFilter, loadDeliveries, type Store, type StoredDelivery } from '@posthorn/store';
import type { z } from 'zod';
import { missing } from './missing.ts';

/** Resolves with a delivery. Throws `AppError` `not_found`. */
export async function findDelivery(store: Store, id: string): Promise<StoredDelivery> {
  const [delivery = missing('delivery')] = await loadDeliveries(store, [id]);
  return delivery;
}

/** The filter of the store that the fields of a query or a body name. */
export function deliveryFilterOf(fields: Omit<z.output<typeof tryNowSchema>, 'limit' | 'cursor'>): DeliveryFilter {
  return {
    subscriptionId: fields.subscription_id,
    eventId: fields.event_id,
    environment: fields.environment,
    eventType: fields.event_type,
    replayId: fields.replay_id,
    fromMs: fields.from,
    toMs: fields.to,
  };
}
