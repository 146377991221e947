/** Publishes events to Posthorn. It needs nothing but fetch. */
export { EventRefused, NotConfirmed, PublishError, PublisherClosed, QueueFull } from './errors.ts';
export type { Accepted, PublishedEvent } from './event.ts';
export type { PublisherOptions } from './options.ts';
export { createPublisher, type Publisher } from './publisher.ts';
