/** Makes the next attempt of a delivery due before its time. */
import type { AuditEntry } from '@posthorn/core';
import { prefixOfId } from '../keys.ts';
import { runScript, type TryNowRefusal } from '../scripts.ts';
import type { Store } from '../store.ts';

/**
 * Makes the next attempt of a delivery that waits for a retry due now, and adds its job. Returns the generation of that,
 * which replaces the previous one, or why nothing was changed. `by`: writes an audit entry.
 */
export async function makeDueNow(
  store: Store,
  deliveryId: string,
  nowMs: number,
  by?: Pick<AuditEntry, 'operator' | 'subscriptionId'>,
): Promise<{ generation: number } | { refused: TryNowRefusal }> {
  return await runScript(store, 'tryNow', prefixOfId(store, deliveryId), {
    id: deliveryId,
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: by && { ...by, action: 'delivery.tried_now', deliveryId },
  });
}
