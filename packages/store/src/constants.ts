/**
 * The constants that Lua scripts use by name: keys, statuses, reasons and limits, each spelled where TypeScript spells
 * it.
 */
import {
  type AuditAction,
  DAY_MS,
  DELIVERY_ID_PREFIX_LENGTH,
  DELIVERY_ID_START,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  ENVIRONMENTS,
  type ErasureStatus,
  EVENT_TYPES,
  type EventRef,
  type FailureReason,
  HEALTH_MINUTES,
  HEALTH_RUN,
  HEALTH_STATES,
  HOUR_MS,
  JOINT_MARKS,
  MIN_RELEASED_AT_MS,
  NOTICE_TYPES,
  REPLAY_STATUSES,
  RESUME_OUTCOMES,
  RETRY_PRIORITY,
  type ResumeOutcome,
  type StatusReason,
  type SubscriptionStatus,
  TEST_EVENT_TYPE,
} from '@posthorn/core';
import { COMPACT_FORMAT, FIRST_FORMAT, PROCESS_FIELD } from './format/formats.ts';
import * as keys from './keys.ts';

/** The status that a subscription's key has between its deletion and the end of its last delivery. */
export const DELETED = 'deleted';
/**
 * Added to the retention. An event is kept for that much longer than a held delivery, so that maintenance still finds
 * it when it ends the delivery. A failed delivery is kept for that much longer than it can be replayed, so that an
 * operator who is too late gets the reason.
 */
export const GRACE_MS = DAY_MS;
/** Notices kept in a partition; beyond that the oldest are dropped. */
const MAX_NOTICES = 100_000;
/**
 * Changes of subscriptions kept in a partition. A console that has not read the oldest one loads all subscriptions
 * again.
 */
export const MAX_CHANGES = 1_000;
/**
 * Expired entries that each failed delivery removes from the list of its address: removing a million takes Redis 0.7 s.
 */
const MAX_TRIMMED = 100;
/** Kinds of errors kept for an address. */
const MAX_ERROR_LABELS = 20;
/** An address whose health changes again and again gets a notice of a failing period at most this often. */
const HEALTH_NOTICE_GAP_MS = 300_000;
/** The field z of a delivery whose payload was erased, and of one whose responses were deleted then. */
const ERASED = '1';
export const ERASED_WITH_RESPONSES = '2';
/** In place of a generation: the delivery was held, not released. */
export const HELD_NOW = '-1';
/**
 * Deliveries that were held which are looked through for the oldest pending one, by each process each second: 0.1 ms of
 * Redis.
 */
const MAX_LOOKED_FOR_OLDEST = 100;
/** The trial of a resume is chosen among this many of the oldest held deliveries. */
const MAX_TRIAL_CHOICE = 100;
/** A trial that is due later than this waits for a retry, and another one is chosen; clocks differ by less. */
const MAX_TRIAL_WAIT_MS = 60_000;
/** Parked deliveries of a paused address that one script holds. */
const HOLD_CHUNK = 500;
/** Where an address has this many parked deliveries, a new one is parked at once. */
const PARK_NEW_FROM = 100;
/**
 * Deliveries that one script parks in place of taking their jobs. With fewer, what is behind a backlog would wait for
 * longer.
 */
const MAX_PARKED_AT_ONCE = 64;
/**
 * Where operators limit how many jobs may be active, an address that has one gets no more beyond this share of them.
 * The rest is for others.
 */
const SHARE_OF_ACTIVE = 0.7;
/**
 * With a higher limit, the active ones are not looked through: that would take Redis longer than the rest of a script.
 */
const MAX_ACTIVE_LOOKED_THROUGH = 200;
/** A retry that has been due for this long is overdue: it is released at a fixed rate for its address. */
const OVERDUE_AFTER_MS = 60_000;
/** While others of its address are overdue, a retry is so after this. */
export const OVERDUE_BEHIND_OTHERS_MS = 1_000;
/** Retries that one script moves into the queue when they are due, as many as BullMQ's own. */
const MAX_PROMOTED = 1_000;
/**
 * A longer event is read by the worker, which caches it: a script that returned it would hold up Redis once for each of
 * its deliveries.
 */
const MAX_EVENT_AT_ONCE = 16_384;

/**
 * Bytes of an event's text in one field of a joint record: one more and Redis needs another byte to say so, two more
 * and it takes twice the memory.
 */
const MAX_TEXT_FIELD = 63;
/**
 * In the stream of the succeeded, how much later another delivery may have been made that succeeded before. A reader
 * reads as much more.
 */
export const MAX_LAG_MS = 1_000;
/**
 * Between the values of a list that is returned as one text. No value contains it: URLs have no control characters, and
 * JSON escapes them (packed data has those from 1 on).
 */
export const VALUE_SEPARATOR = '\0';
/** Says that what was read of a job is a joint record. */
export const JOINT_JOB = 'joint';

/**
 * The fields of a delivery and of its address that decide what a worker has to do for a job, and that an attempt needs.
 */
export const DELIVERY_FIELDS = ['st', 'g', 'x', 'e', 'c', 'n', 'k', 'o', 's', 'p', 'd'] as const;
export const ADDRESS_FIELDS = ['status', 'url', 'secret', 'previous_secret', 'previous_until', 'trial'] as const;
/** The place of each of them, for reading by index. */
export const DELIVERY_PLACES = placesOf(DELIVERY_FIELDS);
export const ADDRESS_PLACES = placesOf(ADDRESS_FIELDS);

function placesOf<F extends string>(fields: readonly F[]) {
  return Object.fromEntries(fields.map((field, place) => [field, place])) as Readonly<Record<F, number>>;
}

/**
 * How long a subscription's stream of deliveries may live beyond what it has to: it is trimmed and prolonged once in
 * this time.
 */
const STREAM_LOOK_MS = HOUR_MS;

const text = (value: string) => `'${value}'`;
/** The beginning of a key, up to its id. */
const key = (withoutPrefix: string) => `prefix .. '${withoutPrefix}'`;
/** A delivery's status as it is stored. */
const status = (name: DeliveryStatus) => text(String(DELIVERY_STATUSES.indexOf(name)));
/**
 * A constant for each word, named by the prefix and the word in capitals: 'replay.done' with NOTICE_ is
 * NOTICE_REPLAY_DONE.
 */
function words<W extends string>(prefix: string, list: readonly W[], expressionOf: (word: W) => string = text) {
  return Object.fromEntries(list.map((word) => [prefix + word.toUpperCase().replaceAll('.', '_'), expressionOf(word)]));
}

/** Each constant as an expression in Lua. */
export const CONSTANTS: Readonly<Record<string, string>> = {
  KEY_AUDIT: key(keys.auditKey('')),
  KEY_BY_SUBSCRIPTION: key(keys.bySubscriptionKey('', '')),
  KEY_CLOSING: key(keys.closingKey('')),
  KEY_DELIVERY: key(keys.deliveryKey('', '')),
  KEY_ERASURE: key(keys.erasureKey('', '')),
  KEY_ERASURE_EVENTS: key(keys.erasureEventsKey('', '')),
  KEY_ERASURE_PROGRESS: key(keys.erasureProgressKey('', '')),
  KEY_ERASURES: key(keys.erasuresKey('')),
  KEY_ERASURES_OPEN: key(keys.openErasuresKey('')),
  KEY_EVENT: key(keys.eventKey('', '' as EventRef)),
  KEY_EVENT_SUCCEEDED: key(keys.eventSucceededKey('', '' as EventRef)),
  KEY_FANNING_OUT: key(keys.fanningOutKey('')),
  KEY_FAILED: key(keys.failedKey('', '')),
  KEY_FAILING: key(keys.failingKey('')),
  KEY_HEALTH: key(keys.healthKey('', '')),
  KEY_NOTICES: key(keys.noticesKey('')),
  KEY_NOTICES_DROPPED: key(keys.noticesDroppedKey('')),
  KEY_QUEUE: key(keys.queueKey('', '')),
  KEY_REPLAY: key(keys.replayKey('', '')),
  KEY_REPLAY_BATCH: key(keys.replayBatchKey('', '')),
  KEY_REPLAY_BATCHES_ACTIVE: key(keys.activeBatchesKey('')),
  KEY_REPLAY_DELIVERIES: key(keys.replayDeliveriesKey('', '')),
  KEY_REPLAYS: key(keys.replaysKey('')),
  KEY_REPLAYS_ACTIVE: key(keys.activeReplaysKey('')),
  KEY_REPLAYS_OPEN: key(keys.openReplaysKey('')),
  KEY_REPLAYS_OF: key(keys.replaysOfKey('', '')),
  KEY_RESPONSES: key(keys.responsesKey('', '')),
  KEY_RESUMING: key(keys.resumingKey('')),
  KEY_SEARCH: key(keys.searchKey('', '')),
  KEY_SUCCEEDED: key(keys.succeededKey('')),
  KEY_SUBSCRIPTION: key(keys.subscriptionKey('', '')),
  KEY_SUBSCRIPTION_CHANGES: key(keys.subscriptionChangesKey('')),
  KEY_SUBSCRIPTIONS: key(keys.subscriptionsKey('', '')),
  KEY_TOPIC: key(keys.topicKey('', '')),
  KEY_TOPICS_VERSION: key(keys.topicsVersionKey('')),
  KEY_WORKING: key(keys.workingKey('')),
  KEY_WORKING_CHECKED: key(keys.workingCheckedKey('')),
  KEY_WORKERS: key(keys.workersKey('')),
  KEY_WORKERS_SEEN: key(keys.workersSeenKey('')),
  ...words('KEY_', keys.LANES, (lane) => key(keys.laneKey('', lane, ''))),
  ...words('KEY_RELEASE_', keys.LANES, (lane) => key(keys.laneIndexKey('', lane))),
  /** Keys of the deliveries with one status. `DELIVERY_INDEXES` has all of them by status, without the prefix. */
  ...words('INDEX_', ['pending', 'waiting_for_retry', 'held', 'succeeded'], (name) => key(keys.byStatusKey('', name))),
  DELIVERY_FIELDS: DELIVERY_FIELDS.map(text).join(', '),
  ADDRESS_FIELDS: ADDRESS_FIELDS.map(text).join(', '),
  DELIVERY_INDEXES: `{${DELIVERY_STATUSES.map((name) => `[${status(name)}] = '${keys.byStatusKey('', name)}'`).join(', ')}}`,
  ...words('', DELIVERY_STATUSES, status),
  ...words<keys.Lane>('LANE_', ['held', 'overdue']),
  ...words<SubscriptionStatus>('', ['active', 'paused', 'refused']),
  DELETED: text(DELETED),
  RESUMING: text(keys.RESUMING),
  TYPE_TEST: String(EVENT_TYPES.indexOf(TEST_EVENT_TYPE)),
  ENVIRONMENT_COUNT: String(ENVIRONMENTS.length),
  ...words<ResumeOutcome>('OUTCOME_', RESUME_OUTCOMES),
  ...words('REPLAY_', REPLAY_STATUSES),
  ...words<ErasureStatus>('ERASURE_', ['waiting', 'done', 'cancelled']),
  ...words<StatusReason | FailureReason>('REASON_', [
    'consecutive_failures',
    'subscription_deleted',
    'cancelled',
    'erased',
    'expired',
  ]),
  /** Those of an outage are added without a script. */
  ...words(
    'NOTICE_',
    NOTICE_TYPES.filter((type) => !type.startsWith('outage.')),
  ),
  ...words<AuditAction>('ACTION_', ['subscription.paused']),
  ...words<AuditAction>('ACTION_', ['subscription.resume_succeeded', 'subscription.resume_failed']),
  GRACE_MS: String(GRACE_MS),
  STREAM_LOOK_MS: String(STREAM_LOOK_MS),
  MAX_CHANGES: String(MAX_CHANGES),
  MAX_NOTICES: String(MAX_NOTICES),
  ...words('HEALTH_', HEALTH_STATES),
  HEALTH_MINUTES: String(HEALTH_MINUTES),
  HEALTH_RUN: String(HEALTH_RUN),
  MAX_TRIMMED: String(MAX_TRIMMED),
  MAX_ERROR_LABELS: String(MAX_ERROR_LABELS),
  HEALTH_NOTICE_GAP_MS: String(HEALTH_NOTICE_GAP_MS),
  ERASED: text(ERASED),
  ERASED_WITH_RESPONSES: text(ERASED_WITH_RESPONSES),
  HELD_NOW: text(HELD_NOW),
  MIN_RELEASED_AT_MS: String(MIN_RELEASED_AT_MS),
  MAX_LOOKED_FOR_OLDEST: String(MAX_LOOKED_FOR_OLDEST),
  MAX_TRIAL_CHOICE: String(MAX_TRIAL_CHOICE),
  MAX_TRIAL_WAIT_MS: String(MAX_TRIAL_WAIT_MS),
  HOLD_CHUNK: String(HOLD_CHUNK),
  PARK_NEW_FROM: String(PARK_NEW_FROM),
  MAX_PARKED_AT_ONCE: String(MAX_PARKED_AT_ONCE),
  SHARE_OF_ACTIVE: String(SHARE_OF_ACTIVE),
  MAX_ACTIVE_LOOKED_THROUGH: String(MAX_ACTIVE_LOOKED_THROUGH),
  DELIVERY_ID_START: text(DELIVERY_ID_START),
  PROCESS_FIELD: text(PROCESS_FIELD),
  DELIVERY_PREFIX: String(DELIVERY_ID_PREFIX_LENGTH),
  RETRY_PRIORITY: String(RETRY_PRIORITY),
  OVERDUE_AFTER_MS: String(OVERDUE_AFTER_MS),
  OVERDUE_BEHIND_OTHERS_MS: String(OVERDUE_BEHIND_OTHERS_MS),
  MAX_PROMOTED: String(MAX_PROMOTED),
  MAX_EVENT_AT_ONCE: String(MAX_EVENT_AT_ONCE),
  FIRST_FORMAT: String(FIRST_FORMAT),
  COMPACT_FORMAT: String(COMPACT_FORMAT),
  MAX_LAG_MS: String(MAX_LAG_MS),
  MAX_TEXT_FIELD: String(MAX_TEXT_FIELD),
  /** In place of the event of a job that was taken: it is in the joint record. */
  JOINT: text(JOINT_JOB),
  VALUE_SEPARATOR: text('\\0'),
  JOINT_SLASH: String('/'.charCodeAt(0)),
  JOINT_FIRST: String(JOINT_MARKS[7][0].charCodeAt(0)),
  JOINT_LAST: String(JOINT_MARKS[7][1].charCodeAt(0)),
  JOINT_OTHER_FIRST: String(JOINT_MARKS[4][0].charCodeAt(0)),
  JOINT_OTHER_LAST: String(JOINT_MARKS[4][1].charCodeAt(0)),
};
