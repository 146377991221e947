/**
 * Dependencies shared by every function of this package. Each function writes the delivery's record first and adds its
 * job second. A crash in between leaves a delivery without a job, never a job without a delivery; a repeated call or
 * the rescue of lost jobs adds the missing job.
 */
import type { Producer } from '@posthorn/queue';
import type { Store } from '@posthorn/store';

export interface StoreAndQueue {
  store: Store;
  producer: Producer;
}

export interface DispatchContext extends StoreAndQueue {
  logger: { info: Log; warn: Log };
}

type Log = (fields: Record<string, unknown>, event: string) => void;
