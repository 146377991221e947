/** Why an event was not published. */
import type { PublishedEvent } from './event.ts';

/**
 * The base of all errors of this package. `eventId` is the id of the event, so that it can be published again under it.
 */
export class PublishError extends Error {
  override name = 'PublishError';
  readonly eventId: string;

  constructor(message: string, eventId: string, options?: ErrorOptions) {
    super(message, options);
    this.eventId = eventId;
  }
}

/**
 * Posthorn refused the event: it is invalid, its id is taken by another content, or the key does not allow it. A
 * repetition does not help.
 */
export class EventRefused extends PublishError {
  override name = 'EventRefused';
  readonly status: number;
  /**
   * The problem document of the response, or what a proxy before Posthorn responded with: undefined if that is no JSON.
   */
  readonly problem: unknown;

  constructor(status: number, problem: unknown, eventId: string) {
    const { detail, errors } = (problem ?? {}) as { detail?: unknown; errors?: unknown };
    const fields = Array.isArray(errors) ? errors.map((error) => `${error?.path}: ${error?.message}`).join('; ') : '';
    super([detail ?? `Posthorn returned ${status}.`, fields].filter(Boolean).join(' '), eventId);
    this.status = status;
    this.problem = problem;
  }
}

/** The queue of the client is full. Nothing was sent; wait for `ready()`. */
export class QueueFull extends PublishError {
  override name = 'QueueFull';
}

/** The publisher was closed before. Nothing was sent. */
export class PublisherClosed extends PublishError {
  override name = 'PublisherClosed';
}

/**
 * Posthorn did not confirm the event in time, or the publisher was closed before it did. It may have been accepted:
 * publish `event` again. `cause` is what the last try failed with; undefined if there was none.
 */
export class NotConfirmed extends PublishError {
  override name = 'NotConfirmed';
  /**
   * The event as it was sent, with its `id` and `created_at`: with another time, its id would be refused as that of
   * another event.
   */
  readonly event: PublishedEvent;

  constructor(message: string, event: PublishedEvent, eventId: string, options?: ErrorOptions) {
    super(message, eventId, options);
    this.event = event;
  }
}
