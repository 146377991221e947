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
  type FailureReason,
  HEALTH_MINUTES,
  HEALTH_RUN,
  HEALTH_STATES,
  HOUR_MS,
  JOINT_MARKS,
  MIN_RELEASED_AT_MS,
  MINUTE_MS,
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
/**
 * Changes of subscriptions kept in a partition. A console that has not read the oldest one loads all subscriptions
 * again.
 */
export const MAX_CHANGES = 1_000;
/** The field z of a delivery whose payload was erased, and of one whose responses were deleted then. */
const ERASED = '1';
export const ERASED_WITH_RESPONSES = '2';
/** In place of a generation: the delivery was held, not released. */
export const HELD_NOW = '-1';
/** While others of its address are overdue, a retry is so after this. */
export const OVERDUE_BEHIND_OTHERS_MS = 1_000;
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

/** Numbers that only scripts use. */
const LIMITS = {
  /** Notices kept in a partition; beyond that the oldest are dropped. */
  MAX_NOTICES: 100_000,
  /**
   * Expired entries that each failed delivery removes from the list of its address: removing a million takes Redis
   * 0.7 s.
   */
  MAX_TRIMMED: 100,
  /** Kinds of errors kept for an address. */
  MAX_ERROR_LABELS: 20,
  /** An address whose health changes again and again gets a notice of a failing period at most this often. */
  HEALTH_NOTICE_GAP_MS: 300_000,
  /**
   * Deliveries that were held which are looked through for the oldest pending one, by each process each second: 0.1 ms
   * of Redis.
   */
  MAX_LOOKED_FOR_OLDEST: 100,
  /** The trial of a resume is chosen among this many of the oldest held deliveries. */
  MAX_TRIAL_CHOICE: 100,
  /** A trial that is due later than this waits for a retry, and another one is chosen; clocks differ by less. */
  MAX_TRIAL_WAIT_MS: 60_000,
  /** Parked deliveries of a paused address that one script holds. */
  HOLD_CHUNK: 500,
  /** Where an address has this many parked deliveries, a new one is parked at once. */
  PARK_NEW_FROM: 100,
  /**
   * Deliveries that one script parks in place of taking their jobs. With fewer, what is behind a backlog would wait for
   * longer.
   */
  MAX_PARKED_AT_ONCE: 64,
  /**
   * Where operators limit how many jobs may be active, an address that has one gets no more beyond this share of them.
   * The rest is for others.
   */
  SHARE_OF_ACTIVE: 0.7,
  /**
   * With a higher limit, the active ones are not looked through: that would take Redis longer than the rest of a
   * script.
   */
  MAX_ACTIVE_LOOKED_THROUGH: 200,
  /** A retry that has been due for this long is overdue: it is released at a fixed rate for its address. */
  OVERDUE_AFTER_MS: 60_000,
  /** A due delivery that can't be attempted is put off for at most 15 minutes; clocks differ by less than the rest. */
  MAX_SNOOZE_MS: 20 * MINUTE_MS,
  /** Retries that one script moves into the queue when they are due, as many as BullMQ's own. */
  MAX_PROMOTED: 1_000,
  /**
   * A longer event is read by the worker, which caches it: a script that returned it would hold up Redis once for each
   * of its deliveries.
   */
  MAX_EVENT_AT_ONCE: 16_384,
  /**
   * Bytes of an event's text in one field of a joint record: one more and Redis needs another byte to say so, two more
   * and it takes twice the memory.
   */
  MAX_TEXT_FIELD: 63,
  /**
   * How long a subscription's stream of deliveries may live beyond what it has to: it is trimmed and prolonged once in
   * this time.
   */
  STREAM_LOOK_MS: HOUR_MS,
};

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

/**
 * The value of a word in capitals that a file of lua/ uses, as an expression in Lua; undefined if it is no constant.
 * `KEY_` and a name stand for how the key of that name in keys.ts begins, up to its id: KEY_ERASURES for `erasuresKey`.
 */
export function constantOf(word: string): string | undefined {
  const constant = CONSTANTS[word];
  if (constant !== undefined) return String(constant);
  const [, name = ''] = /^KEY_(\w+)$/.exec(word) ?? [];
  const camelCase = name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const makers: Partial<Record<string, unknown>> = keys;
  const make = makers[`${camelCase}Key`];
  return typeof make === 'function' ? key(make('', '')) : undefined;
}

/** Each constant but most keys, as an expression in Lua. */
export const CONSTANTS: Readonly<Record<string, string | number>> = {
  ...LIMITS,
  ...words('KEY_', keys.LANES, (lane) => key(keys.laneKey('', lane, ''))),
  ...words('KEY_RELEASE_', keys.LANES, (lane) => key(keys.laneIndexKey('', lane))),
  /** Keys of the deliveries with one status. `DELIVERY_INDEXES` has all of them by status, without the prefix. */
  ...words('INDEX_', DELIVERY_STATUSES, (name) => key(keys.byStatusKey('', name))),
  DELIVERY_FIELDS: DELIVERY_FIELDS.map(text).join(', '),
  ADDRESS_FIELDS: ADDRESS_FIELDS.map(text).join(', '),
  DELIVERY_INDEXES: `{${DELIVERY_STATUSES.map((name) => `[${status(name)}] = '${keys.byStatusKey('', name)}'`).join(', ')}}`,
  ...words('', DELIVERY_STATUSES, status),
  ...words<keys.Lane>('LANE_', ['held', 'overdue']),
  ...words<SubscriptionStatus>('', ['active', 'paused', 'refused']),
  DELETED: text(DELETED),
  RESUMING: text(keys.RESUMING),
  TYPE_TEST: EVENT_TYPES.indexOf(TEST_EVENT_TYPE),
  ENVIRONMENT_COUNT: ENVIRONMENTS.length,
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
  ...words<AuditAction>('ACTION_', [
    'subscription.paused',
    'subscription.resume_succeeded',
    'subscription.resume_failed',
  ]),
  GRACE_MS,
  MAX_CHANGES,
  ...words('HEALTH_', HEALTH_STATES),
  HEALTH_MINUTES,
  HEALTH_RUN,
  ERASED: text(ERASED),
  ERASED_WITH_RESPONSES: text(ERASED_WITH_RESPONSES),
  HELD_NOW: text(HELD_NOW),
  MIN_RELEASED_AT_MS,
  DELIVERY_ID_START: text(DELIVERY_ID_START),
  PROCESS_FIELD: text(PROCESS_FIELD),
  DELIVERY_PREFIX: DELIVERY_ID_PREFIX_LENGTH,
  RETRY_PRIORITY,
  OVERDUE_BEHIND_OTHERS_MS,
  FIRST_FORMAT,
  COMPACT_FORMAT,
  MAX_LAG_MS,
  /** In place of the event of a job that was taken: it is in the joint record. */
  JOINT: text(JOINT_JOB),
  VALUE_SEPARATOR: text('\\0'),
  JOINT_SLASH: '/'.charCodeAt(0),
  JOINT_FIRST: JOINT_MARKS[7][0].charCodeAt(0),
  JOINT_LAST: JOINT_MARKS[7][1].charCodeAt(0),
  JOINT_OTHER_FIRST: JOINT_MARKS[4][0].charCodeAt(0),
  JOINT_OTHER_LAST: JOINT_MARKS[4][1].charCodeAt(0),
};
