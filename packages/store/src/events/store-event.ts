/**
 * Stores an event with its deliveries, or makes those of one that is stored. store-events.ts joins the events of one
 * turn of the event loop.
 */
import {
  chunksOf,
  deliveryId,
  type EventRef,
  eachInTurn,
  jointRef,
  partitionOf,
  type SearchTerm,
} from '@posthorn/core';
import { keptWhileUnfinishedMs } from '../deliveries/delivery-record.ts';
import { COMPACT_FORMAT } from '../format/formats.ts';
import { partitionPrefix } from '../keys.ts';
import { streamLimits } from '../lists/stream-limits.ts';
import { type CreatedState, runScript } from '../scripts.ts';
import type { Store } from '../store.ts';
import { decodeEvent, encodeEvent, encodeJoint, encodeKind, type StoredEvent } from './event-record.ts';
import { prefixOfEvent } from './events.ts';
import { type Match, topicsPartitionOf } from './matcher.ts';
import { searchEntries } from './search-index.ts';
import { MAX_DELIVERIES, storeTogether } from './store-events.ts';

/** What `storeEvent` may be told. */
interface StoreOptions {
  withDeliveries?: boolean;
  isNewId?: boolean;
  searchTerms?: readonly SearchTerm[];
  match?: Match | undefined;
}

/** The event stored before, or the deliveries that were made. */
type Stored = { kept: StoredEvent } | { created: CreatedDelivery[] };

export interface CreatedDelivery {
  deliveryId: string;
  subscriptionId: string;
  state: CreatedState;
}

/**
 * Stores an event unless its id is taken in its environment; with `withDeliveries` makes its deliveries in the same
 * step, up to `MAX_DELIVERIES`, in Redis Cluster only those that are in the same partition. Returns the event stored
 * before, or the deliveries made. Until `confirmFanOut`, an event whose other deliveries are still to be made is in the
 * list that `interruptedFanOuts` reads. With `isNewId` the id was just made, so no event stored before can have it. The
 * event is added to the search index under `searchTerms`. With `match`, of which `stored.subscriptionIds` are, nothing
 * is stored if a subscription was changed since: returns 'outdated'.
 */
export async function storeEvent(
  store: Store,
  stored: StoredEvent,
  options?: StoreOptions & { match?: undefined },
): Promise<Stored>;
export async function storeEvent(
  store: Store,
  stored: StoredEvent,
  options: StoreOptions,
): Promise<Stored | 'outdated'>;
export async function storeEvent(
  store: Store,
  stored: StoredEvent,
  options: StoreOptions = {},
): Promise<Stored | 'outdated'> {
  const { ref, event, acceptedAtMs, subscriptionIds } = stored;
  const partition = partitionOf(event.id, store.partitions);
  const joint = options.withDeliveries ? asJoint(store, stored) : undefined;
  const ownRef = joint?.ref ?? ref;
  const deliveries = options.withDeliveries ? deliveriesWith(store, { ...stored, ref: ownRef }, partition) : [];
  const otherRef = joint ? ref : jointRef(event);
  const { slice, searchUntilMs, terms, entry } = searchEntries(store, stored, options.searchTerms ?? []);
  const result = await storeTogether(store, {
    place: {
      home: prefixOfEvent(store, ref),
      partition,
      topicsVersion: options.match?.versions[topicsPartitionOf(store, partition)],
      slice,
      searchUntilMs,
    },
    event: {
      event: ownRef,
      kind: encodeKind(event),
      nowMs: acceptedAtMs,
      text: joint?.text ?? encodeEvent(stored),
      // What matched nobody has no delivery that could fail. A held one fails after the retention and finds its event.
      expiresAtMs:
        acceptedAtMs + (subscriptionIds.length === 0 ? store.succeededRetentionMs : keptWhileUnfinishedMs(store)),
      other: options.isNewId ? undefined : otherRef,
      isPart: deliveries.length < subscriptionIds.length ? 'part' : undefined,
      terms,
      entry,
      deliveryCount: deliveries.length,
    },
    deliveries,
  });
  if (result === 'outdated') return result;
  if ('stored' in result) {
    const keptRef = result.place === 'own' ? ownRef : (otherRef ?? ref);
    const kept = decodeEvent(keptRef, result.stored);
    if (kept === undefined) throw new Error(`The joint record of event ${event.id} has no event`);
    return { kept };
  }
  return { created: withStates(deliveries, result.states) };
}

/** A longer text is stored apart from its delivery's record, since Redis reads a hash from its beginning. */
const MAX_JOINT_BYTES = 1_000;

/** How an event with one delivery in its own partition is stored together with it; undefined if it is not. */
function asJoint(store: Store, stored: StoredEvent): { ref: EventRef; text: string } | undefined {
  const [only, another] = stored.subscriptionIds;
  if (only === undefined || another !== undefined || store.format.current() < COMPACT_FORMAT) return undefined;
  const isInPlace = partitionOf(only, store.partitions) === partitionOf(stored.event.id, store.partitions);
  const ref = isInPlace ? jointRef(stored.event) : undefined;
  if (ref === undefined) return undefined;
  const text = encodeJoint(stored);
  return Buffer.byteLength(text) > MAX_JOINT_BYTES ? undefined : { ref, text };
}

/**
 * Makes the deliveries of an event to the subscriptions that it was matched to. May be repeated: existing deliveries do
 * not change. `beforeEach` is called before each script.
 */
export async function createDeliveries(
  store: Store,
  stored: StoredEvent,
  beforeEach: () => void = () => undefined,
): Promise<CreatedDelivery[]> {
  const { ref, event, acceptedAtMs: nowMs, subscriptionIds } = stored;
  const values = { event: ref, kind: encodeKind(event), nowMs, ...streamLimits(store, nowMs) };
  const eventPartition = partitionOf(event.id, store.partitions);
  const created: CreatedDelivery[] = [];
  const createChunk = async ({ partition, ids }: { partition: number; ids: readonly string[] }) => {
    beforeEach();
    const deliveries = ids.map((id) => ({ subscriptionId: id, deliveryId: deliveryId(ref, id) }));
    const states = await runScript(store, 'createDeliveries', partitionPrefix(store, partition), {
      ...values,
      eventPartition: store.spansPartitions && partition !== eventPartition ? eventPartition : undefined,
      deliveries,
    });
    created.push(...withStates(deliveries, states));
  };
  const byPartition = Map.groupBy(subscriptionIds, (id) => partitionOf(id, store.partitions));
  const chunks = Array.from(byPartition, ([partition, all]) =>
    Array.from(chunksOf(all, MAX_DELIVERIES), (ids) => ({ partition, ids })),
  );
  // One after the other: Redis would run all that it has received from a connection before it serves the next one. In a
  // Cluster, each of the others may be on another Redis.
  const sequences = store.spansPartitions ? [chunks.flat()] : chunks;
  await Promise.all(sequences.map((sequence) => eachInTurn(sequence, createChunk)));
  return created;
}

/**
 * The deliveries that one script can make with the event itself, which is in `partition`: on one Redis any, in a
 * Cluster those of that partition.
 */
function deliveriesWith(store: Store, { ref, subscriptionIds }: StoredEvent, partition: number) {
  const deliveries: { subscriptionId: string; deliveryId: string; deliveryHome: string | undefined }[] = [];
  for (const subscriptionId of subscriptionIds) {
    const home = partitionOf(subscriptionId, store.partitions);
    if (home !== partition && !store.spansPartitions) continue;
    if (deliveries.length === MAX_DELIVERIES) break;
    const deliveryHome = home === partition ? undefined : partitionPrefix(store, home);
    deliveries.push({ subscriptionId, deliveryId: deliveryId(ref, subscriptionId), deliveryHome });
  }
  return deliveries;
}

function withStates(deliveries: Omit<CreatedDelivery, 'state'>[], states: readonly CreatedState[]): CreatedDelivery[] {
  const created: CreatedDelivery[] = [];
  for (let i = 0; i < states.length; i++) {
    const [delivery, state] = [deliveries[i], states[i]];
    if (delivery && state)
      created.push({ deliveryId: delivery.deliveryId, subscriptionId: delivery.subscriptionId, state });
  }
  return created;
}
