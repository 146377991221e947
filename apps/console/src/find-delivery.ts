/** What the routes of deliveries share: how they find one, and which ones a filter names. */
import type { deliveriesQuerySchema, tryNowSchema } from '@posthorn/operator-api';
import { type DeliveryFilter, loadDeliveries, type Store, type StoredDelivery } from '@posthorn/store';
import type { z } from 'zod';
import { missingOrExpired } from './missing.ts';

/** Resolves with a delivery. Throws `AppError` `not_found`. */
export async function findDelivery(store: Store, id: string): Promise<StoredDelivery> {
  const [delivery = missingOrExpired('delivery')] = await loadDeliveries(store, [id]);
  return delivery;
}

/** Without those that `deliveryFilterOf` leaves to its callers. */
type Fields<Given> = Omit<Given, 'status' | 'error' | 'limit' | 'cursor'>;

/** The filter of the store that the fields of a query or a body name. The compiler checks that it uses each of them. */
export function deliveryFilterOf(
  fields: Fields<z.output<typeof deliveriesQuerySchema>> | Fields<z.output<typeof tryNowSchema>>,
): DeliveryFilter {
  const { subscription_id, event_id, environment, event_type, replay_id, from, to, ...unused } = fields;
  unused satisfies Record<string, never>;
  return {
    subscriptionId: subscription_id,
    eventId: event_id,
    environment,
    eventType: event_type,
    replayId: replay_id,
    fromMs: from,
    toMs: to,
  };
}
