/** Puts the events of sessions into one timeline, and marks what arrived out of order. */
import type { Delivery } from './delivery.ts';

/** An event of a session with its deliveries. Times are in milliseconds since 1970. */
export interface TimelineItem {
  id: string;
  sessionId: string;
  environment: string;
  createdAtMs: number;
  acceptedAtMs: number;
  deliveries: readonly Pick<Delivery, 'id' | 'subscriptionId' | 'status' | 'finishedAtMs'>[];
}

/**
 * The ids of events that were accepted, and of deliveries that arrived at their address, after a later event of the
 * same session. "Later" is by the time at which the publisher created the event; events created in the same millisecond
 * have no order.
 */
export function outOfOrder(items: readonly TimelineItem[]): { events: Set<string>; deliveries: Set<string> } {
  const late = { events: new Set<string>(), deliveries: new Set<string>() };
  const sessions = Map.groupBy(items, ({ environment, sessionId }) => `${environment} ${sessionId}`);
  for (const events of sessions.values()) {
    let earliestMs = Number.POSITIVE_INFINITY;
    const arrivals = new Map<string, number>();
    // From the newest event back: what is known is the earliest acceptance, and the earliest arrival at each address,
    // of all later events.
    const instants = Map.groupBy(events, ({ createdAtMs }) => createdAtMs);
    for (const createdAtMs of [...instants.keys()].sort((a, b) => b - a)) {
      const sameInstant = instants.get(createdAtMs) ?? [];
      const arrived = sameInstant.flatMap(({ deliveries }) => deliveries).flatMap(arrivalOf);
      for (const { id, acceptedAtMs } of sameInstant) if (acceptedAtMs > earliestMs) late.events.add(id);
      for (const { id, address, atMs } of arrived) {
        if (atMs > (arrivals.get(address) ?? Number.POSITIVE_INFINITY)) late.deliveries.add(id);
      }
      earliestMs = Math.min(earliestMs, ...sameInstant.map(({ acceptedAtMs }) => acceptedAtMs));
      for (const { address, atMs } of arrived) {
        arrivals.set(address, Math.min(atMs, arrivals.get(address) ?? Number.POSITIVE_INFINITY));
      }
    }
  }
  return late;
}

function arrivalOf({ id, subscriptionId: address, status, finishedAtMs: atMs }: TimelineItem['deliveries'][number]) {
  return status === 'succeeded' && atMs !== null ? [{ id, address, atMs }] : [];
}
