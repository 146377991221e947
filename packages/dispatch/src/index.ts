/** What needs the store and the queue: opens both, consumes jobs, and ends what is left of a deleted subscription. */
export { closeInSteps, closeSubscription } from './close-subscription.ts';
export { createDeliveryConsumer, type EndDeliveryJob } from './consume.ts';
export { installationIn, openStorage, readBacklog } from './open-storage.ts';
