/**
 * Shortens the life of events whose deliveries have all succeeded. An event is stored for longer, since nobody knows
 * how its deliveries will end.
 */
import { chunksOf, type EventRef } from '@posthorn/core';
import { partitionPrefix } from '../keys.ts';
import { runScript } from '../scripts.ts';
import type { Store } from '../store.ts';

/** Deliveries reported by one script: a few milliseconds of Redis. */
const CHUNK = 500;

/**
 * A delivery that has succeeded; not a replay, and not one in a joint record, whose expiry was set with its success.
 */
export interface SucceededDelivery {
  event: EventRef;
  /** How many deliveries the event has, replays not included. */
  count: number;
  /** Which of them this is, from 0: the position of its subscription among those of the event. */
  position: number;
}

/**
 * Reports deliveries that have succeeded, all of events in one partition. An event is kept for `RETENTION_SUCCEEDED`
 * from `nowMs` once all its deliveries have been reported, so not longer than that after its last delivery. A failed
 * delivery is never reported, and only a failed one can be replayed: an event that may still be needed keeps its life.
 * May be repeated. A report that is lost only leaves the event for longer.
 */
export async function shortenEvents(
  store: Store,
  partition: number,
  succeeded: readonly SucceededDelivery[],
  nowMs: number,
): Promise<void> {
  const untilMs = nowMs + store.succeededRetentionMs;
  const prefix = partitionPrefix(store, partition);
  for (const deliveries of chunksOf(succeeded, CHUNK))
    await runScript(store, 'shortenEvents', prefix, { untilMs, deliveries });
}
