/** Makes identifiers, and reads the partition back out of those that carry it. */
import { createHash, hash, randomBytes, randomUUID } from 'node:crypto';
import type { Environment } from './event.ts';
import { partitionHash } from './partition.ts';

/** What a publisher may send as an event id (interface 3). */
export const EVENT_ID = /^[A-Za-z0-9._:~-]{1,128}$/;
export const SUBSCRIPTION_ID = /^sub_[A-Za-z0-9_-]{22}$/;
export const DELIVERY_ID = /^dlv_[A-Za-z0-9_-]{26}$/;
/** A bulk replay. */
export const REPLAY_ID = /^rpl_[A-Za-z0-9_-]{26}$/;
/** Bulk replays of several addresses that were started together. */
export const REPLAY_BATCH_ID = /^rpb_[A-Za-z0-9_-]{26}$/;

/** An erasure. */
export const ERASURE_ID = /^ers_[A-Za-z0-9_-]{22}$/;

/** A new erasure id: `ers_` and 128 random bits. */
export function newErasureId(): string {
  return `ers_${randomBytes(16).toString('base64url')}`;
}

/** A new event id: `evt_` and a UUIDv7, so that ids made later sort later. */
export function newEventId(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0');
  // The random part of a UUIDv4, whose bits behind the version are those of a UUIDv7. Node keeps random bytes for these in stock.
  return `evt_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/**
 * The name of an event in Redis and in jobs. An event id is unique within its environment only, so the name is the id and the
 * environment's first letter: `order-1/p`. Events stored before ids were scoped to the environment are named by the bare id.
 */
export type EventRef = string & { readonly brand: 'EventRef' };

/** The reference of an event with this id in this environment. */
export function eventRef({ id, environment }: { id: string; environment: Environment }): EventRef {
  return `${id}/${environment[0]}` as EventRef;
}

/** The event id in a reference. No event id contains a slash. */
export function eventIdOf(ref: EventRef): string {
  const slash = ref.indexOf('/');
  return slash === -1 ? ref : ref.slice(0, slash);
}

/** A new subscription id: `sub_` and 128 random bits. */
export function newSubscriptionId(): string {
  return `sub_${randomBytes(16).toString('base64url')}`;
}

/** A name that the operators chose for a subscription, so that `posthorn apply` finds it again. */
export const SUBSCRIPTION_KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The id of the subscription with this key: always the same, so a second one with the key can't be created. */
export function subscriptionIdOfKey(key: string): string {
  const hash = createHash('sha256').update(`subscription key\n${key}`).digest();
  return `sub_${hash.subarray(0, 16).toString('base64url')}`;
}

/**
 * The id of the delivery that one event makes to one subscription: the same every time, so that a repeated publish can only
 * fill gaps. `replayNonce` sets a replay's delivery apart from the first one.
 *
 * The first 6 characters after `dlv_` carry the subscription's partition hash, the other 20 are 120 bits of SHA-256. With its
 * 30 characters the id fits the smallest string class of Redis that can hold it.
 */
export function deliveryId(event: EventRef, subscriptionId: string, replayNonce = ''): string {
  const rest = hash('sha256', `${event}\n${subscriptionId}\n${replayNonce}`, 'base64url');
  return `${deliveryIdPrefix(subscriptionId)}${rest.slice(0, 20)}`;
}

/** How the ids of all deliveries to one subscription begin. Those to another one may too, but hardly ever do. */
export function deliveryIdPrefix(subscriptionId: string): string {
  return `dlv_${hashText(subscriptionId)}`;
}

/** A new id of a bulk replay of one subscription's deliveries; carries the subscription's partition hash like a delivery's. */
export function newReplayId(subscriptionId: string): string {
  return `rpl_${hashText(subscriptionId)}${randomBytes(15).toString('base64url')}`;
}

/** A new id of a batch of bulk replays; carries the partition hash of its first subscription. */
export function newReplayBatchId(subscriptionId: string): string {
  return `rpb_${hashText(subscriptionId)}${randomBytes(15).toString('base64url')}`;
}

function hashText(subscriptionId: string): string {
  const hash = Buffer.alloc(4);
  hash.writeUInt32BE(partitionHash(subscriptionId));
  return hash.toString('base64url');
}

/** The partition of a delivery, a bulk replay or a batch, read from its id: always that of its (first) subscription. */
export function partitionOfId(id: string, partitions: number): number {
  return Buffer.from(id.slice(4, 10), 'base64url').readUInt32BE() % partitions;
}
