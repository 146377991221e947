/** Try now: an operator has the next attempt of a delivery made before its time (decision 36). */
import { randomBytes } from 'node:crypto';
import type { AuditEntry } from '@posthorn/core';
import { prefixOfId } from '../keys.ts';
import { runScript, type TryNowRefusal } from '../scripts.ts';
import type { Store } from '../store.ts';

/**
 * Makes the next attempt of a delivery that waits for a retry due now: adds a job for it, and removes the one that
 * waited. `by`: writes an audit entry. Returns why not, or undefined.
 */
export async function tryNow(
  store: Store,
  deliveryId: string,
  nowMs: number,
  by?: Pick<AuditEntry, 'operator' | 'subscriptionId'>,
): Promise<TryNowRefusal | undefined> {
  const result = await runScript(store, 'tryNow', prefixOfId(store, deliveryId), {
    id: deliveryId,
    tryId: randomBytes(6).toString('base64url'),
    nowMs,
    retentionMs: store.retentionMs,
    auditEntry: by && { ...by, action: 'delivery.tried_now', deliveryId },
  });
  return result === 'tried' ? undefined : result;
}
