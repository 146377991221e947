/**
 * Gathers succeeded deliveries and reports them in batches, so that their events expire earlier without an extra Redis
 * command for each attempt.
 */
import { type EventRef, eventIdOf, isJoint, knownOrNew, partitionOf } from '@posthorn/core';
import type { Clock } from '@posthorn/runtime';
import { type Store, type SucceededDelivery, shortenEvents } from '@posthorn/store';

/**
 * Reports that wait while Redis is away, in equal shares of the partitions: about 10 MB. Others are dropped, and their
 * events are kept for longer.
 */
const MAX_WAITING = 50_000;

export type SucceededEvents = ReturnType<typeof createSucceededEvents>;

export function createSucceededEvents(store: Store, clock: Clock) {
  const waitingIn = new Map<number, SucceededDelivery[]>();
  return {
    /**
     * Notes that a delivery of an event to a subscription has succeeded. `positions`: the subscriptions of the event.
     */
    add(event: EventRef, subscriptionId: string, positions: ReadonlyMap<string, number>): void {
      const position = positions.get(subscriptionId);
      // A joint record got its expiry when its delivery succeeded.
      if (position === undefined || isJoint(event)) return;
      const waiting = knownOrNew(waitingIn, partitionOf(eventIdOf(event), store.partitions), () => []);
      if (waiting.length < MAX_WAITING / store.partitions) waiting.push({ event, count: positions.size, position });
    },
    /** Reports what was noted of the events of a partition. If that fails, throws and keeps it for the next call. */
    async flush(partition: number): Promise<void> {
      const waiting = waitingIn.get(partition) ?? [];
      const reported = waiting.slice();
      await shortenEvents(store, partition, reported, clock.now());
      waiting.splice(0, reported.length);
    },
  };
}
