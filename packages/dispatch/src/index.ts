/** What needs the store and the queue: opens both, consumes jobs, and removes those that are not needed any more. */
export { stepCancellation } from './cancel-replay.ts';
export { closeInSteps, closeSubscription } from './close-subscription.ts';
export { createDeliveryConsumer, type EndDeliveryJob } from './consume.ts';
export { openStorage, readBacklog, readInstallation } from './open-storage.ts';
export { tryNow } from './try-now.ts';
