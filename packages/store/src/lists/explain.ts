/** Collects what is known of one event and one address, for core's `explain`. */
import { type Case, deliveryId, type Environment, type TraceContext } from '@posthorn/core';
import { type AuditRecord, listAudit } from '../audit.ts';
import { loadExisting, type StoredDelivery } from '../deliveries/delivery-record.ts';
import { laneOf } from '../deliveries/lanes.ts';
import type { StoredEvent } from '../events/event-record.ts';
import { findEvents, refsOf } from '../events/events.ts';
import { replaysOf } from '../replays/replays.ts';
import type { Store } from '../store.ts';
import { loadSubscriptions, type StoredSubscription } from '../subscriptions/subscriptions.ts';
import { newestCreatedFirst } from './page.ts';

/** Audit entries of the subscription that are read: enough for a year of changes, and a few milliseconds. */
const MAX_ENTRIES = 100;

/** Replays that are looked at; the newest delivery is among them. */
const MAX_REPLAYS = 10;

/** What decides whether a subscription matches an event. */
const MATCHING_CHANGES: readonly string[] = ['subscription.updated', 'subscription.validated'];

type StoredCase = Case & {
  subscription: StoredSubscription | undefined;
  delivery: StoredDelivery | undefined;
  /** The trace of the event. */
  trace: TraceContext | undefined;
};

/**
 * Reads the case of an event and an address. An id names at most one event in each environment. Without `environment`,
 * it is the event that has a delivery to this address; else the one of the environment that the address is bound to;
 * else the one of production. Reads a bounded part of the audit trail; what is older than that is left out.
 */
export async function readCase(
  store: Store,
  eventId: string,
  subscriptionId: string,
  environment: Environment | undefined,
  nowMs: number,
): Promise<StoredCase> {
  const [events, [subscription], deliveries] = await Promise.all([
    findEvents(store, eventId),
    loadSubscriptions(store, [subscriptionId]),
    deliveriesOf(store, eventId, subscriptionId),
  ]);
  const isWanted = (each: Environment) => environment === undefined || each === environment;
  const [delivery] = deliveries.filter((each) => isWanted(each.environment));
  const candidates = events.filter(({ event }) => isWanted(event.environment));
  const wanted = [delivery?.environment, subscription?.environment, 'production'];
  const inWanted = wanted.map((each) => candidates.find(({ event }) => event.environment === each));
  const stored = delivery ? inWanted[0] : (inWanted.find((each) => each !== undefined) ?? candidates[0]);
  const entries = await listAudit(store, { subscriptionId }, { limit: MAX_ENTRIES }, nowMs);
  const newest = (action: string) => entries.items.find((entry) => entry.action === action)?.atMs;
  return {
    event: stored && caseEvent(stored, subscriptionId),
    subscription,
    delivery,
    trace: stored?.trace,
    lane: delivery && (await laneOf(store, delivery)),
    pausedAtMs: newest('subscription.paused'),
    deletedAtMs: newest('subscription.deleted'),
    changed: stored && firstChange(entries.items, stored.acceptedAtMs),
    retentionMs: store.retentionMs,
    succeededRetentionMs: store.succeededRetentionMs,
    nowMs,
  };
}

function caseEvent({ event, acceptedAtMs, subscriptionIds }: StoredEvent, subscriptionId: string): Case['event'] {
  return {
    type: event.type,
    environment: event.environment,
    acceptedAtMs,
    isMatched: subscriptionIds.includes(subscriptionId),
  };
}

/**
 * The deliveries of the events with one id to one address, newest first. Their ids follow from both; so do those of
 * replays.
 */
async function deliveriesOf(store: Store, eventId: string, subscriptionId: string): Promise<StoredDelivery[]> {
  const refs = refsOf(eventId);
  const replays = await Promise.all(refs.map((ref) => replaysOf(store, ref, subscriptionId)));
  const first = refs.map((ref) => deliveryId(ref, subscriptionId));
  const found = await loadExisting(store, [
    ...first,
    ...replays.flatMap((list) => list.slice(-MAX_REPLAYS)).map(({ id }) => id),
  ]);
  // Two subscriptions may have the same beginning of ids.
  const own = found.filter((delivery) => delivery.subscriptionId === subscriptionId);
  return own.sort(newestCreatedFirst);
}

/** Entries are newest first. */
function firstChange(entries: readonly AuditRecord[], afterMs: number): Case['changed'] {
  return entries.findLast(({ action, atMs }) => MATCHING_CHANGES.includes(action) && atMs > afterMs);
}
