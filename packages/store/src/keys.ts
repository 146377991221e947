/** Spells every key in Redis; of BullMQ's own, only how they begin (`queueKey`). docs/architecture.md has the table. */
import { type EventRef, jointRefOf, partitionOf, partitionOfId, type SubscriptionStatus } from '@posthorn/core';

export { queueKey } from '@posthorn/core';

interface Partitioned {
  /** KEY_PREFIX. */
  prefix: string;
  partitions: number;
}

/**
 * The prefix of all keys of one partition. The braces are a hash tag: in Redis Cluster all keys of a partition share
 * one slot, so one script may touch any of them.
 */
export function partitionPrefix({ prefix }: Pick<Partitioned, 'prefix'>, partition: number): string {
  return `${prefix}:{${partition}}`;
}

/** The prefixes of all partitions, in order. */
export function allPrefixes(store: Partitioned): string[] {
  return Array.from({ length: store.partitions }, (_, partition) => partitionPrefix(store, partition));
}

/** The partition prefix of a subscription and of everything that belongs to it. */
export function prefixOfSubscription(store: Partitioned, subscriptionId: string): string {
  return partitionPrefix(store, partitionOf(subscriptionId, store.partitions));
}

/** The partition prefix of a delivery, a bulk replay or a batch, whose id says where its subscription lives. */
export function prefixOfId(store: Partitioned, id: string): string {
  return partitionPrefix(store, partitionOfId(id, store.partitions));
}

/**
 * An event's text, in the partition of the event's own id; a hash that has its only delivery too, if the reference is
 * joint.
 */
export const eventKey = (prefix: string, event: EventRef) => `${prefix}:event:${event}`;
/** String of bits: which of an event's deliveries have succeeded, from the first success to the last. */
export const eventSucceededKey = (prefix: string, event: EventRef) => `${prefix}:event_succeeded:${event}`;
/** Sorted set of references to events whose fan-out has begun and not been confirmed, by its last progress. */
export const fanningOutKey = (prefix: string) => `${prefix}:fanning_out`;
/** Hash of a delivery; that of its event too, if it is the only one (event-record.ts). */
export const deliveryKey = (prefix: string, deliveryId: string) => {
  const joint = jointRefOf(deliveryId);
  return joint === undefined ? `${prefix}:delivery:${deliveryId}` : eventKey(prefix, joint);
};
/**
 * Hash of what came back from a delivery's first and last failed attempt, and from the success after them, by attempt.
 */
export const responsesKey = (prefix: string, deliveryId: string) => `${prefix}:responses:${deliveryId}`;
export const subscriptionKey = (prefix: string, subscriptionId: string) => `${prefix}:subscription:${subscriptionId}`;
/**
 * Sorted set of the subscriptions with one stored status (`resuming` is one), by creation. Each subscription is in
 * exactly one of them.
 */
export const subscriptionsKey = (prefix: string, status: string) => `${prefix}:subscriptions:${status}`;
/** Stream of the ids of subscriptions that were changed or deleted: consoles follow it (directory.ts). */
export const subscriptionChangesKey = (prefix: string) => `${prefix}:subscription_changes`;
/**
 * The stored status of an active address that is resuming: every script that asks for an active address holds its
 * deliveries.
 */
export const RESUMING = 'resuming';
/** The sorted sets of the subscriptions with one status. */
export const subscriptionsKeys = (prefix: string, status: SubscriptionStatus) =>
  (status === 'active' ? [status, RESUMING] : [status]).map((stored) => subscriptionsKey(prefix, stored));
/** Set of the subscriptions that listen on one topic (core's match.ts). */
export const topicKey = (prefix: string, topic: string) => `${prefix}:topic:${topic}`;
/**
 * A number that each change to topics of any partition changes: ingest keeps what it has matched as long as it stays
 * the same.
 */
export const topicsVersionKey = (prefix: string) => `${prefix}:topics_version`;
/** In a Redis Cluster only: which beginning of the partition this is. */
export const begunKey = (prefix: string) => `${prefix}:begun`;
/**
 * Sorted set of the deliveries with one status, by creation. Each delivery is in exactly one of them, or in
 * `succeededKey`.
 */
export const byStatusKey = (prefix: string, status: string) => `${prefix}:by_status:${status}`;
/** Stream of the succeeded deliveries by creation; those that succeeded late, or in format 1, are in `byStatusKey`. */
export const succeededKey = (prefix: string) => `${prefix}:succeeded`;
/** Stream of a subscription's deliveries in the order they were made: a third of a sorted set's memory. */
export const bySubscriptionKey = (prefix: string, subscriptionId: string) =>
  `${prefix}:by_subscription:${subscriptionId}`;
/** Sorted set of a subscription's failed deliveries, by creation. */
export const failedKey = (prefix: string, subscriptionId: string) => `${prefix}:failed:${subscriptionId}`;
/**
 * The lanes in which a delivery waits outside BullMQ, sorted sets by creation. `held`: until its address is active;
 * `parked`: until a slot is free; `overdue`: until it is released, at `RELEASE_RATE`.
 */
export const LANES = ['held', 'parked', 'overdue'] as const;
export type Lane = (typeof LANES)[number];
export const laneKey = (prefix: string, lane: Lane, subscriptionId: string) => `${prefix}:${lane}:${subscriptionId}`;
/** Set of the subscriptions that have deliveries to release from a lane. */
export const laneIndexKey = (prefix: string, lane: Lane) => `${prefix}:release_${lane}`;
/** Set of the subscriptions that are resuming: maintenance sends the trial of each. */
export const resumingKey = (prefix: string) => `${prefix}:resuming`;
/** Set of the deleted subscriptions that are not cleared away yet. */
export const closingKey = (prefix: string) => `${prefix}:closing`;
/**
 * Work that one process at a time does in a partition, and the keys of its leases, which expire when their holder dies.
 * If two processes do it, some work is done twice, without harm.
 */
const LEASES = { maintenance: 'housekeeper', notifier: 'notifier' } as const;
export type LeasedWork = keyof typeof LEASES;
export const leaseKey = (prefix: string, work: LeasedWork) => `${prefix}:${LEASES[work]}`;
/**
 * Written before WAIT, so that replicas which acknowledge it have everything before it too; and to see whether Redis
 * takes writes.
 */
export const replicatedKey = (prefix: string) => `${prefix}:replicated`;
/** One bulk replay. */
export const replayKey = (prefix: string, replayId: string) => `${prefix}:replay:${replayId}`;
/** Sorted set of the bulk replays by creation. */
export const replaysKey = (prefix: string) => `${prefix}:replays`;
/** Stream of the deliveries that a bulk replay made, in order. */
export const replayDeliveriesKey = (prefix: string, replayId: string) => `${prefix}:replay_deliveries:${replayId}`;
/** Set of the bulk replays that maintenance works on. */
export const activeReplaysKey = (prefix: string) => `${prefix}:replays_active`;
/** What release 0.1.0 wrote for bulk replays. Nothing reads it, and the next one that ends deletes it. */
export const openReplaysKey = (prefix: string) => `${prefix}:replays_open`;
/** The bulk replays of several addresses that were started together. */
export const replayBatchKey = (prefix: string, batchId: string) => `${prefix}:replay_batch:${batchId}`;
/** Set of the batches of which not every replay has been started, or cancelled, for certain. */
export const activeBatchesKey = (prefix: string) => `${prefix}:replay_batches_active`;
/** Sorted set of the replays of one event to one address, by creation; named after the first delivery of the two. */
export const replaysOfKey = (prefix: string, firstDeliveryId: string) => `${prefix}:replays_of:${firstDeliveryId}`;
/** Hash of one erasure; in the first partition, like the two that follow. */
export const erasureKey = (prefix: string, erasureId: string) => `${prefix}:erasure:${erasureId}`;
/** Sorted set of the erasures by creation. */
export const erasuresKey = (prefix: string) => `${prefix}:erasures`;
/** Set of the erasures that have not ended. */
export const openErasuresKey = (prefix: string) => `${prefix}:erasures_open`;
/** Hash of an erasure's progress in one partition: passes over the events, the cursor of the present one, counts. */
export const erasureProgressKey = (prefix: string, erasureId: string) => `${prefix}:erasure_progress:${erasureId}`;
/** Sorted set of the events of one partition that an erasure has found and not erased, by the time of the next look. */
export const erasureEventsKey = (prefix: string, erasureId: string) => `${prefix}:erasure_events:${erasureId}`;
/** Stream of audit entries. */
export const auditKey = (prefix: string) => `${prefix}:audit`;
/** Stream of notices that have not been posted yet. */
export const noticesKey = (prefix: string) => `${prefix}:notices`;
/** How many notices were dropped since too many waited, and are not reported yet. */
export const noticesDroppedKey = (prefix: string) => `${prefix}:notices_dropped`;
/** Counts of attempts and their durations in one minute or hour; in the first partition, for the whole installation. */
export const statsKey = (prefix: string, unit: 'minute' | 'hour', number: number) =>
  `${prefix}:stats:${unit}:${number}`;
/** Counts of one address in one hour. */
export const addressStatsKey = (prefix: string, subscriptionId: string, hour: number) =>
  `${prefix}:stats:address:${subscriptionId}:${hour}`;
/** Hash of what the attempts of an address say about its health (core's health.ts). */
export const healthKey = (prefix: string, subscriptionId: string) => `${prefix}:health:${subscriptionId}`;
/** Sorted set of the failing addresses, by the time since which they fail. */
export const failingKey = (prefix: string) => `${prefix}:failing`;
/** Sorted sets of the addresses attempted in one hour: by failed attempts, by mean duration. */
export const rankingKey = (prefix: string, ranking: 'failing' | 'slow', hour: number) =>
  `${prefix}:stats:${ranking}:${hour}`;
/** Hash of the workers' heartbeats, and sorted set of the workers by their last one; in the first partition. */
export const workersKey = (prefix: string) => `${prefix}:workers`;
export const workersSeenKey = (prefix: string) => `${prefix}:workers_seen`;
/**
 * Hash of the workers that have or just had jobs of a partition: the checks since each has last renewed its lease. The
 * other key is there for a moment after a check.
 */
export const workingKey = (prefix: string) => `${prefix}:working`;
export const workingCheckedKey = (prefix: string) => `${prefix}:working_checked`;
/** Sorted set of the sites that workers reached lately, by time; in the first partition. */
export const reachedKey = (prefix: string) => `${prefix}:reached`;
/** List of entries of the search index: those of one slice of time whose terms have one first byte of their hash. */
export const searchKey = (prefix: string, sliceAndBucket: string) => `${prefix}:search:${sliceAndBucket}`;
/** Exists while a console has listeners of the live tail; the stream of attempts for them. In the first partition. */
export const tailingKey = (prefix: string) => `${prefix}:tailing`;
export const tailKey = (prefix: string) => `${prefix}:tail`;
/** The same for those who listen to the sandbox: a stream of references to new events. */
export const listeningKey = (prefix: string) => `${prefix}:listening`;
export const publishedKey = (prefix: string) => `${prefix}:published`;
/** A signed-in operator's session. */
export const sessionKey = (keyPrefix: string, sessionId: string) => `${keyPrefix}:session:${sessionId}`;
/** Hash of what a publisher has stored: bytes by thirtieths of the retention. */
export const publisherUsageKey = (keyPrefix: string, publisher: string) => `${keyPrefix}:stored:${publisher}`;
/**
 * Hash of what is one for the whole installation: the stored format, its processes, the number of partitions, the
 * workers' rules.
 */
export const installationKey = (keyPrefix: string) => `${keyPrefix}:installation`;
