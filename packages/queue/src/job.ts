/** The jobs of deliveries in BullMQ: their queue and their priority. No job contains a body, an address or a secret. */

/** The name of the one queue that each partition has. */
export const QUEUE_NAME = 'deliveries';

/**
 * BullMQ takes jobs with a priority after all jobs without one. So retries wait behind first attempts, and many retries
 * due at once delay no new event (docs/decisions, 20).
 */
export const RETRY_PRIORITY = 1;
