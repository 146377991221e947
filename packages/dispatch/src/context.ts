/** Dependencies that the functions of this package share. */
import type { Producer } from '@posthorn/queue';
import type { Store } from '@posthorn/store';

/**
 * Of a function that writes the record of a delivery first and adds its job second. A crash in between leaves a delivery
 * without a job, never a job without a delivery; a repeated call or the rescue of lost jobs adds the missing job.
 */
export interface StoreAndQueue {
  store: Store;
  producer: Producer;
}

/** Of a function that makes the deliveries of an event: the scripts of the store add their first jobs. */
export interface FanOutContext {
  store: Store;
  logger: { info: Log; warn: Log };
}

type Log = (fields: Record<string, unknown>, event: string) => void;
