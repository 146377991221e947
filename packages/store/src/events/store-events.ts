/**
 * Stores the events of one turn of the event loop with one script: a call costs ingest and Redis more than what is done
 * in it for one event.
 */
import { partitionPrefix } from '../keys.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { joinCalls } from '../redis/join-calls.ts';
import type { Values } from '../script.ts';
import { type EventReply, runScript, type scripts } from '../scripts.ts';
import type { Store } from '../store.ts';
import { topicsPartitionOf } from './matcher.ts';

/** Events stored by one script: half a millisecond of Redis, in which nobody else is served. */
const MAX_EVENTS = 16;
/** Deliveries made by one script: two or three milliseconds of Redis. */
export const MAX_DELIVERIES = 100;
/** Smaller scripts cost more CPU; more of them in flight gain nothing. */
const EARLY = { items: 3, unlessInFlight: 4 };

type Arguments = Values<(typeof scripts)['storeEvents']['declaration']>;

/** An event as `storeEvents` takes it. */
interface NewEvent {
  /** Its partition, and what it shares with most events of a turn. */
  place: Omit<Arguments['partitions'][number], 'home' | 'eventCount'> & { home: string };
  event: Arguments['events'][number];
  /** At most `MAX_DELIVERIES`. */
  deliveries: Arguments['deliveries'];
}

/** Stores an event with the others of this turn of the event loop. May be repeated. Throws the error of Redis. */
export const storeTogether = joinCalls<NewEvent, EventReply>({
  max: MAX_EVENTS,
  maxDeliveries: MAX_DELIVERIES,
  deliveriesOf: ({ deliveries }) => deliveries.length,
  early: EARLY,
  prefixOf: ({ place }) => place.home,
  run,
});

async function run(
  store: Store,
  all: readonly NewEvent[],
  { place: { home, partition }, event: { nowMs } }: NewEvent,
): Promise<EventReply[]> {
  const partitions: (NewEvent['place'] & { eventCount: number })[] = [];
  for (const { place } of all) {
    const last = partitions.at(-1);
    const isSame =
      last?.home === place.home && last.topicsVersion === place.topicsVersion && last.slice === place.slice;
    if (last && isSame) last.eventCount += 1;
    else partitions.push({ ...place, eventCount: 1 });
  }
  return await runScript(store, 'storeEvents', home, {
    ...streamLimits(store, Number(nowMs)),
    topicsHome: partitionPrefix(store, topicsPartitionOf(store, Number(partition))),
    partitions,
    events: all.map(({ event }) => event),
    deliveries: all.flatMap(({ deliveries }) => deliveries),
  });
}
