/**
 * Gathers succeeded deliveries and reports them in batches, so that their events expire earlier without an extra Redis
 * command for each attempt.
 */
import type { EventRef } from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { type Store, type SucceededDelivery, shortenEvents } from '@posthorn/store';

/** Reports that wait while Redis is away: about 10 MB. Others are dropped, and their events are kept for longer. */
const MAX_WAITING = 50_000;

export type SucceededEvents = ReturnType<typeof createSucceededEvents>;

export function createSucceededEvents(store: Store, clock: Clock) {
  let waiting: SucceededDelivery[] = [];
  return {
    /** Notes that a delivery of an event to a subscription has succeeded. `positions`: the subscriptions of the event. */
    add(event: EventRef, subscriptionId: string, positions: ReadonlyMap<string, number>): void {
      const position = positions.get(subscriptionId);
      if (position === undefined || waiting.length >= MAX_WAITING) return;
      waiting.push({ event, count: positions.size, position });
    },
    /** Reports what was noted. If that fails, throws and keeps it for the next call. */
    async flush(): Promise<void> {
      const reported = waiting.length;
      await shortenEvents(store, waiting.slice(0, reported), clock.now());
      waiting = waiting.slice(reported);
    },
  };
}
