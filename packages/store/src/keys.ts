/** Spells every key that Posthorn itself keeps in Redis (BullMQ's own are under `queuePrefix`). docs/architecture.md has the table. */
import type { EventRef } from '@posthorn/core';

/**
 * The common beginning of all keys of one partition. The braces are a hash tag: in Redis Cluster all keys of a partition
 * share one slot, so one script may touch any of them.
 */
export function partitionBase(prefix: string, partition: number): string {
  return `${prefix}:{${partition}}`;
}

/** Where an event's text is kept: in the partition of the event's own id. */
export const eventKey = (base: string, event: EventRef) => `${base}:event:${event}`;
/** Sorted set of references to events whose fan-out has begun and not been confirmed, by the time it began. */
export const fanningOutKey = (base: string) => `${base}:fanning_out`;
export const deliveryKey = (base: string, deliveryId: string) => `${base}:delivery:${deliveryId}`;
export const subscriptionKey = (base: string, subscriptionId: string) => `${base}:subscription:${subscriptionId}`;
/** Sorted set of the subscriptions with one status, by creation. Each subscription is in exactly one of them. */
export const subscriptionsKey = (base: string, status: string) => `${base}:subscriptions:${status}`;
/** Set of the subscriptions that listen on one topic (core's match.ts). */
export const topicKey = (base: string, topic: string) => `${base}:topic:${topic}`;
/** Sorted set of the deliveries with one status, by creation. Each delivery is in exactly one of them. */
export const byStatusKey = (base: string, status: string) => `${base}:by_status:${status}`;
/** Stream of a subscription's deliveries in the order they were made: a third of a sorted set's memory. */
export const bySubscriptionKey = (base: string, subscriptionId: string) => `${base}:by_subscription:${subscriptionId}`;
/** Sorted set of a subscription's failed deliveries, by creation. */
export const failedKey = (base: string, subscriptionId: string) => `${base}:failed:${subscriptionId}`;
/** The two lanes in which a delivery waits outside BullMQ: sorted sets by creation. */
export type Lane = 'held' | 'parked';
export const laneKey = (base: string, lane: Lane, subscriptionId: string) => `${base}:${lane}:${subscriptionId}`;
/** Set of the subscriptions whose lane is to be emptied. */
export const laneIndexKey = (base: string, lane: Lane) => `${base}:release_${lane}`;
/** When the last overdue attempt of an address has its turn. */
export const pacedKey = (base: string, subscriptionId: string) => `${base}:paced:${subscriptionId}`;
/** Set of the subscriptions deleted but not yet cleared away. */
export const closingKey = (base: string) => `${base}:closing`;
/** The lease for the partition's maintenance; expires when its holder dies. */
export const maintenanceKey = (base: string) => `${base}:housekeeper`;
/** Written before WAIT, so that replicas which acknowledge it have everything before it too. */
export const replicatedKey = (base: string) => `${base}:replicated`;
/** One bulk replay. */
export const replayKey = (base: string, replayId: string) => `${base}:replay:${replayId}`;
/** Sorted set of the bulk replays by creation. */
export const replaysKey = (base: string) => `${base}:replays`;
/** Set of the bulk replays that are running. */
export const replayingKey = (base: string) => `${base}:replaying`;
/** Sorted set of the replays of one event to one address, by creation; named after the first delivery of the two. */
export const replaysOfKey = (base: string, firstDeliveryId: string) => `${base}:replays_of:${firstDeliveryId}`;
/** Stream of audit entries. */
export const auditKey = (base: string) => `${base}:audit`;
/** Stream of notices that have not been given yet. */
export const noticesKey = (base: string) => `${base}:notices`;
/** The lease for giving the partition's notices. */
export const notifierKey = (base: string) => `${base}:notifier`;
/** Counts of attempts and their durations in one minute or hour; in the first partition, for the whole installation. */
export const statsKey = (base: string, unit: 'minute' | 'hour', number: number) => `${base}:stats:${unit}:${number}`;
/** Counts of one address in one hour. */
export const addressStatsKey = (base: string, subscriptionId: string, hour: number) =>
  `${base}:stats:address:${subscriptionId}:${hour}`;
/** Sorted sets of the addresses attempted in one hour: by failed attempts, by mean duration. */
export const rankingKey = (base: string, ranking: 'failing' | 'slow', hour: number) =>
  `${base}:stats:${ranking}:${hour}`;
/** Hash of the workers' heartbeats, and sorted set of the workers by their last one; in the first partition. */
export const workersKey = (base: string) => `${base}:workers`;
export const workersSeenKey = (base: string) => `${base}:workers_seen`;
/** Sorted set of the sites that workers reached lately, by time; in the first partition. */
export const reachedKey = (base: string) => `${base}:reached`;
/** A signed-in operator's session. */
export const sessionKey = (prefix: string, sessionId: string) => `${prefix}:session:${sessionId}`;
/** Hash of what a publisher has stored: bytes by thirtieths of the retention. */
export const publisherUsageKey = (prefix: string, publisher: string) => `${prefix}:stored:${publisher}`;
/** Hash of settings of the whole installation: the number of partitions, the attempts allowed. */
export const installationKey = (prefix: string) => `${prefix}:installation`;
