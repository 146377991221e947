/** Try now: an operator has the next attempt of a delivery made before its time (decision 36). */
import { partitionOfId } from '@posthorn/core';
import { makeDueNow, type TryNowRefusal } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/**
 * Makes the next attempt of a delivery due now, and removes the job that waited for it. `by`: writes an audit entry.
 * Returns why not, or undefined.
 */
export async function tryNow(
  { store, jobQueues }: StoreAndQueue,
  deliveryId: string,
  nowMs: number,
  by?: Parameters<typeof makeDueNow>[3],
): Promise<TryNowRefusal | undefined> {
  const made = await makeDueNow(store, deliveryId, nowMs, by);
  if ('refused' in made) return made.refused;
  // It would find itself superseded when it is due.
  const superseded = { deliveryId, generation: made.generation - 1 };
  await jobQueues.remove(partitionOfId(deliveryId, store.partitions), [superseded]);
  return undefined;
}
