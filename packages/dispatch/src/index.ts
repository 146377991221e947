/** Makes, tests, rescues and erases deliveries, closes subscriptions, and consumes jobs, with the store and the queue. */
export { stepCancellation } from './cancel-replay.ts';
export { closeSubscription } from './close-subscription.ts';
export { createDeliveryConsumer, type EndDeliveryJob, type EndedDeliveryJob } from './consume.ts';
export type { FanOutContext } from './context.ts';
export { eraseFoundEvent } from './erase-event.ts';
export { finishFanOuts, makeDeliveries } from './make-deliveries.ts';
export { makeTestDelivery } from './make-test-delivery.ts';
export { openStorage, readBacklog, readInstallation } from './open-storage.ts';
export { rescue } from './rescue.ts';
export { tryNow } from './try-now.ts';
