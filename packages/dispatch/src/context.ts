/** Dependencies that the functions of this package share. */
import type { JobQueues } from '@posthorn/queue';
import type { Store } from '@posthorn/store';

/** Of a function that needs records and jobs. */
export interface StoreAndQueue {
  store: Store;
  jobQueues: JobQueues;
}

/** Of a function that makes the deliveries of an event: the scripts of the store add their first jobs. */
export interface FanOutContext {
  store: Store;
  logger: { info: Log; warn: Log };
}

type Log = (fields: Record<string, unknown>, event: string) => void;
