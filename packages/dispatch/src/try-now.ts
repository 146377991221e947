/** Try now: an operator has the next attempt of a delivery made before its time (decision 36). */
import { partitionOfId } from '@posthorn/core';
import { makeDueNow, type TryNowRefusal } from '@posthorn/store';
import type { StoreAndQueue } from './context.ts';

/** Makes the next attempt of a delivery due now, and replaces its job. Returns why not, or undefined. */
export async function tryNow(
  { store, producer }: StoreAndQueue,
  deliveryId: string,
  by: Parameters<typeof makeDueNow>[3],
  nowMs: number,
): Promise<TryNowRefusal | undefined> {
  const job = await makeDueNow(store, deliveryId, nowMs, by);
  if ('refused' in job) return job.refused;
  const partition = partitionOfId(deliveryId, store.partitions);
  await producer.add(partition, [job]);
  // It would find itself superseded when it is due.
  await producer.remove(partition, [{ deliveryId, generation: job.generation - 1 }]);
  return undefined;
}
