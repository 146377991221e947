/** A replay: an operator's new delivery of a failed one's event (specification 3.1). */
import { randomBytes } from 'node:crypto';
import { partitionOf } from '@posthorn/core';
import { type ReplayRefusal, replayDelivery, type StoredDelivery } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/** Makes a new delivery with fresh attempts, and its job. `nonce` tells its id from those of other replays. */
export async function replay(
  { store, producer }: StoreAndQueue,
  failed: StoredDelivery,
  operator: string,
  nowMs: number,
  nonce = randomBytes(16).toString('base64url'),
): Promise<{ refused: ReplayRefusal } | { deliveryId: string }> {
  const made = await replayDelivery(store, failed, nonce, nowMs, { operator });
  if ('refused' in made) return made;
  const { deliveryId } = made;
  if (made.state === 'pending') {
    const { subscriptionId, event } = failed;
    const job = { deliveryId, generation: 0, subscriptionId, event };
    await producer.add(partitionOf(subscriptionId, store.partitions), [job]);
  }
  return { deliveryId };
}
