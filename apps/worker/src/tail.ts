/**
 * Writes attempts to the live tail, in batches and only while an operator watches. An attempt costs no command of its
 * own.
 */
import { type Attempt, type DeliveryStatus, eventIdOf } from '@posthorn/core';
import { createRepeating, type Logger, type Service } from '@posthorn/runtime';
import { type BegunAttempt, createFeedWriter, encodeTailEntry, type Store } from '@posthorn/store';

export interface Tail extends Service {
  /** Notes an attempt that was recorded. `status` is the delivery's status after it. */
  attempted(deliveryId: string, begun: BegunAttempt, attempt: Attempt, status: DeliveryStatus): void;
}

export function createTail(store: Store, logger: Logger): Tail {
  const feed = createFeedWriter(store, 'attempts');
  return {
    ...createRepeating({ name: 'tail', everyMs: feed.everyMs, run: feed.write, logger }),
    attempted(deliveryId, { event, eventType, environment, subscriptionId }, attempt, status) {
      if (!feed.isWatched()) return;
      const delivery = { deliveryId, eventId: eventIdOf(event), eventType, environment, subscriptionId };
      feed.add(encodeTailEntry({ ...delivery, ...attempt, status }), attempt.error !== null);
    },
  };
}
