/** Dependencies that the functions of this package share. */
import type { JobQueues } from '@posthorn/queue';
import type { Store } from '@posthorn/store';

/** Of a function that needs records and jobs. */
export interface StoreAndQueue {
  store: Store;
  jobQueues: JobQueues;
}
