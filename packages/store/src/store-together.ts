/** Stores the events of one turn of the event loop with one script: a call costs ingest and Redis more than what is done in it for one event. */
import { StorageUnavailable } from '@posthorn/core';
import { atEndOfTurn } from './join-writes.ts';
import type { Values } from './script.ts';
import { type EventReply, runScript, type scripts } from './scripts.ts';
import type { Store } from './store.ts';
import { streamLimits } from './stream-limits.ts';

/** Events stored by one script: half a millisecond of Redis, in which nobody else is served. */
const MAX_EVENTS = 16;
/** Deliveries made by one script: two or three milliseconds of Redis. */
export const MAX_DELIVERIES = 100;

type Arguments = Values<(typeof scripts)['storeEvents']['declaration']>;

/** An event as `storeEvents` takes it. */
export interface NewEvent {
  /** Its partition, and what it shares with most events of a turn. */
  place: Omit<Arguments['partitions'][number], 'home' | 'eventCount'> & { prefix: string };
  event: Omit<Arguments['events'][number], 'deliveryCount'>;
  /** At most `MAX_DELIVERIES`. */
  deliveries: Arguments['deliveries'];
}

interface Waiting {
  one: NewEvent;
  resolve: (reply: EventReply) => void;
  reject: (error: unknown) => void;
}

interface Batch {
  waiting: Waiting[];
  deliveries: number;
}

/** What waits for the end of the turn, by what one script may use: everything, or in Redis Cluster one partition. */
const batchesOf = new WeakMap<Store, Map<string, Batch>>();

/** Stores an event with the others of this turn of the event loop, in the order of the calls. May be repeated. Throws the error of Redis. */
export function storeTogether(store: Store, one: NewEvent): Promise<EventReply> {
  let batches = batchesOf.get(store);
  if (!batches) {
    batches = new Map();
    batchesOf.set(store, batches);
  }
  return gather(store, batches, store.spansPartitions ? '' : one.place.prefix, one);
}

function gather(store: Store, batches: Map<string, Batch>, name: string, one: NewEvent): Promise<EventReply> {
  return new Promise((resolve, reject) => {
    const send = (batch: Batch) => {
      // A full one has been sent already, and others may wait since.
      if (batches.get(name) !== batch) return;
      batches.delete(name);
      void storeAll(store, batch.waiting);
    };
    const open = batches.get(name);
    if (open && open.deliveries + one.deliveries.length > MAX_DELIVERIES) send(open);
    let batch = batches.get(name);
    if (!batch) {
      const begun: Batch = { waiting: [], deliveries: 0 };
      batch = begun;
      batches.set(name, begun);
      atEndOfTurn(() => send(begun));
    }
    batch.waiting.push({ one, resolve, reject });
    batch.deliveries += one.deliveries.length;
    if (batch.waiting.length === MAX_EVENTS) send(batch);
  });
}

async function storeAll(store: Store, waiting: readonly Waiting[]): Promise<void> {
  try {
    const replies = await run(store, waiting);
    for (const [i, { resolve, reject }] of waiting.entries()) {
      const reply = replies[i];
      if (reply === undefined) reject(new Error(`storeEvents returned ${replies.length} results of ${waiting.length}`));
      else resolve(reply);
    }
  } catch (error) {
    // What is wrong with one of them must not hold up the others. Those that were stored are stored before now.
    const isOneAtFault = waiting.length > 1 && !(error instanceof StorageUnavailable);
    for (const one of waiting) {
      if (isOneAtFault) await storeAll(store, [one]);
      else one.reject(error);
    }
  }
}

async function run(store: Store, waiting: readonly Waiting[]): Promise<EventReply[]> {
  const [first] = waiting;
  if (!first) return [];
  const { prefix } = first.one.place;
  const partitions: (NewEvent['place'] & { home: string | undefined; eventCount: number })[] = [];
  for (const { one } of waiting) {
    const { place } = one;
    const last = partitions.at(-1);
    const isSame =
      last?.prefix === place.prefix && last.topicsVersion === place.topicsVersion && last.slice === place.slice;
    if (last && isSame) last.eventCount += 1;
    else partitions.push({ ...place, home: place.prefix === prefix ? undefined : place.prefix, eventCount: 1 });
  }
  return await runScript(store, 'storeEvents', prefix, {
    ...streamLimits(store, Number(first.one.event.nowMs)),
    partitions,
    events: waiting.map(({ one: { event, deliveries } }) => ({ ...event, deliveryCount: deliveries.length })),
    deliveries: waiting.flatMap(({ one }) => one.deliveries),
  });
}
