/** Makes the next attempt of a delivery due before its time. */
import type { AuditEntry, DeliveryJob } from '@posthorn/core';
import { prefixOfId } from './keys.ts';
import { runScript, type TryNowRefusal } from './scripts.ts';
import type { Store } from './store.ts';

/**
 * Makes the next attempt of a delivery that waits for a retry due now. Returns the job to add, whose generation
 * replaces the previous one, or why nothing was changed.
 */
export async function makeDueNow(
  store: Store,
  deliveryId: string,
  nowMs: number,
  by: Pick<AuditEntry, 'operator' | 'subscriptionId'>,
): Promise<DeliveryJob | { refused: TryNowRefusal }> {
  const made = await runScript(store, 'tryNow', prefixOfId(store, deliveryId), {
    id: deliveryId,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: { ...by, action: 'delivery.tried_now', deliveryId },
  });
  return made.refused === undefined ? { ...made, deliveryId } : { refused: made.refused };
}
