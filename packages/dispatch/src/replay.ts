/** A replay: an operator's new delivery of a failed one's event (specification 3.1). */
import { randomBytes } from 'node:crypto';
import { type ReplayRefusal, replayDelivery, type StoredDelivery } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/** Makes a new delivery with fresh attempts. `nonce` tells its id from those of other replays. */
export async function replay(
  { store }: Pick<StoreAndQueue, 'store'>,
  failed: StoredDelivery,
  operator: string,
  nowMs: number,
  nonce = randomBytes(16).toString('base64url'),
): Promise<{ refused: ReplayRefusal } | { deliveryId: string }> {
  const made = await replayDelivery(store, failed, nonce, nowMs, { operator });
  return 'refused' in made ? made : { deliveryId: made.deliveryId };
}
