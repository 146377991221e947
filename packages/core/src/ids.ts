/** Makes identifiers, and reads the partition back out of those that carry it. */
import { createHash, hash, randomBytes, randomUUID } from 'node:crypto';
import type { Environment } from './event.ts';
import { partitionHash, partitionOf } from './partition.ts';

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
  // The random part of a UUIDv4, whose bits behind the version are those of a UUIDv7. Node keeps random bytes for these
  // in stock.
  return `evt_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

const LAST_DIGITS = 3;
const ENDINGS = 16 ** LAST_DIGITS;
const lastDigits = (ending: number) => ending.toString(16).padStart(LAST_DIGITS, '0');

/**
 * How the hash of an id changes when its last digits are these in place of zeros, whatever precedes them: a CRC is
 * linear.
 */
let changes: Uint32Array | undefined;

/**
 * Returns an id of `newEventId` with other last digits, so that its event is in this partition. In the rare case that
 * none of the 4,096 endings leads there, the id stays as it is.
 */
export function eventIdIn(partition: number, partitions: number, id: string): string {
  changes ??= Uint32Array.from(
    { length: ENDINGS },
    (_, i) => partitionHash(lastDigits(i)) ^ partitionHash(lastDigits(0)),
  );
  const beginning = id.slice(0, -LAST_DIGITS);
  const hash = partitionHash(beginning + lastDigits(0));
  // The search starts at the random digits that the id has.
  const first = Number.parseInt(id.slice(-LAST_DIGITS), 16);
  for (let i = 0; i < ENDINGS; i++) {
    const ending = (first + i) % ENDINGS;
    if (((hash ^ (changes[ending] ?? 0)) >>> 0) % partitions === partition) return beginning + lastDigits(ending);
  }
  return id;
}

/**
 * The name of an event in Redis and in jobs. An event id is unique within its environment only, so the name is the id
 * and the environment's first letter: `order-1/p`.
 */
export type EventRef = string & { readonly brand: 'EventRef' };

/** The reference of an event with this id in this environment. */
export function eventRef({ id, environment }: { id: string; environment: Environment }): EventRef {
  return `${id}/${environment[0]}` as EventRef;
}

/** The event id in a reference. No event id contains a slash. */
export function eventIdOf(ref: EventRef): string {
  if (isJoint(ref)) return unpackId(ref);
  return ref.slice(0, ref.indexOf('/'));
}

/** The ids that Posthorn and its client make: `evt_` and a lower-case UUID of version 7 or 4. */
const UUID_ID = /^evt_([0-9a-f]{8})-([0-9a-f]{4})-([47])([0-9a-f]{3})-([89ab])([0-9a-f]{3})-([0-9a-f]{12})$/;
const ENVIRONMENT_LETTERS = ['s', 'p'];
/**
 * The first and the last of the eight letters that a joint reference may begin with, by the version of the UUID: the
 * letter says the environment and the variant.
 */
export const JOINT_MARKS = { 7: ['I', 'P'], 4: ['h', 'o'] } as const;
const JOINT_REF = /^\/[I-Ph-o][A-Za-z0-9_-]{20}$/;
const JOINT_DELIVERY_ID = /^dlv_[A-Za-z0-9_-]{5}([I-Ph-o][A-Za-z0-9_-]{20})$/;

/**
 * The reference of an event that is stored together with its only delivery: a slash, a letter, and 120 bits of its id.
 * The delivery's id ends with the letter and the bits, so each of the two says where the other is. Undefined for an id
 * of another form than `UUID_ID`.
 */
export function jointRef({ id, environment }: { id: string; environment: Environment }): EventRef | undefined {
  const [, time, low, version, a, variant = '', b, rest] = UUID_ID.exec(id) ?? [];
  if (version === undefined) return undefined;
  const first = JOINT_MARKS[version === '7' ? 7 : 4][0];
  const index = 4 * ENVIRONMENT_LETTERS.indexOf(environment.slice(0, 1)) + Number.parseInt(variant, 16) - 8;
  const bits = Buffer.from(`${time}${low}${a}${b}${rest}`, 'hex').toString('base64url');
  return `/${String.fromCharCode(first.charCodeAt(0) + index)}${bits}` as EventRef;
}

/** Whether a reference is one of `jointRef`. */
export function isJoint(ref: EventRef): boolean {
  return JOINT_REF.test(ref);
}

/**
 * The joint reference of the event whose only delivery has this id; undefined if the delivery has a record of its own.
 */
export function jointRefOf(deliveryId: string): EventRef | undefined {
  const end = JOINT_DELIVERY_ID.exec(deliveryId)?.[1];
  return end === undefined ? undefined : (`/${end}` as EventRef);
}

function unpackId(ref: EventRef): string {
  const mark = ref.charCodeAt(1);
  const version = mark < JOINT_MARKS[4][0].charCodeAt(0) ? 7 : 4;
  const variant = (8 + ((mark - JOINT_MARKS[version][0].charCodeAt(0)) % 4)).toString(16);
  const hex = Buffer.from(ref.slice(2), 'base64url').toString('hex');
  const [time, low, a, b] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 15), hex.slice(15, 18)];
  return `evt_${time}-${low}-${version}${a}-${variant}${b}-${hex.slice(18)}`;
}

/** A new subscription id: `sub_` and 128 random bits. */
export function newSubscriptionId(): string {
  return `sub_${randomBytes(16).toString('base64url')}`;
}

/** A name that the operators chose for a subscription, so that `posthorn apply` finds it again. */
export const SUBSCRIPTION_KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The id of the subscription with this key: always the same, so a second one with the key can't be created. */
export function subscriptionIdOfKey(key: string): string {
  const digest = createHash('sha256').update(`subscription key\n${key}`).digest();
  return `sub_${digest.subarray(0, 16).toString('base64url')}`;
}

/**
 * The id of the delivery that one event makes to one subscription: the same every time, so that a repeated publish can
 * only fill gaps. `replayNonce` sets a replay's delivery apart from the first one.
 *
 * The first 6 characters after `dlv_` carry the subscription's partition hash, the other 20 are 120 bits of SHA-256.
 * With its 30 characters the id fits the smallest string class of Redis that can hold it. For a joint reference, the
 * first 5 carry 30 bits of that hash, and the other 21 are the reference.
 */
export function deliveryId(event: EventRef, subscriptionId: string, replayNonce = ''): string {
  if (replayNonce === '' && isJoint(event)) return `${deliveryIdPrefix(subscriptionId)}${event.slice(1)}`;
  const rest = hash('sha256', `${event}\n${subscriptionId}\n${replayNonce}`, 'base64url');
  return `${DELIVERY_ID_START}${hashText(subscriptionId)}${rest.slice(0, 20)}`;
}

/** How the ids of all deliveries begin. */
export const DELIVERY_ID_START = 'dlv_';

/** How the ids of all deliveries to one subscription begin. Those to another one may too, but hardly ever do. */
export function deliveryIdPrefix(subscriptionId: string): string {
  return `${DELIVERY_ID_START}${hashText(subscriptionId).slice(0, 5)}`;
}

/** The length of what `deliveryIdPrefix` returns. */
export const DELIVERY_ID_PREFIX_LENGTH = deliveryIdPrefix('').length;

/**
 * A new id of a bulk replay of one subscription's deliveries; carries the subscription's partition hash like a
 * delivery's.
 */
export function newReplayId(subscriptionId: string): string {
  return `rpl_${hashText(subscriptionId)}${randomBytes(15).toString('base64url')}`;
}

/** A new id of a batch of bulk replays; carries the partition hash of its first subscription. */
export function newReplayBatchId(subscriptionId: string): string {
  return `rpb_${hashText(subscriptionId)}${randomBytes(15).toString('base64url')}`;
}

function hashText(subscriptionId: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(partitionHash(subscriptionId));
  return bytes.toString('base64url');
}

/** The partition of a delivery, a bulk replay or a batch, read from its id: always that of its (first) subscription. */
export function partitionOfId(id: string, partitions: number): number {
  if (partitions === 1) return 0;
  const joint = jointRefOf(id);
  if (joint !== undefined) return partitionOf(eventIdOf(joint), partitions);
  return Buffer.from(id.slice(4, 10), 'base64url').readUInt32BE() % partitions;
}
