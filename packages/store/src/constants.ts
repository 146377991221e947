/** The constants that Lua scripts use by name: keys, statuses, reasons and limits, each spelled where TypeScript spells it. */
import {
  type AuditAction,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  type FailureReason,
  type NoticeType,
  type ReplayStatus,
  type StatusReason,
  type SubscriptionStatus,
  type Verdict,
} from '@posthorn/core';
import * as keys from './keys.ts';

/** The status that a subscription's key has between its deletion and the end of its last delivery. */
export const DELETED = 'deleted';
/**
 * Grace period added to the retention: an event is kept that much longer than a held delivery, so that the sweep that ends the delivery
 * finds it; a failed delivery, so that an operator who replays it too late is told so.
 */
export const GRACE_MS = 86_400_000;
/** Notices kept in a partition while nobody fetches them. */
export const MAX_NOTICES = 100_000;
/** In place of a generation: the delivery was not released but held. */
export const HELD_NOW = '-1';
/** Parked deliveries of a paused address that one script holds. */
const HOLD_CHUNK = 500;
/** Where so many are parked at an address, a new delivery is parked as it is made. */
const PARK_NEW_FROM = 100;

const text = (value: string) => `'${value}'`;
/** The beginning of a key, up to its id. */
const key = (withoutPrefix: string) => `prefix .. '${withoutPrefix}'`;
/** A delivery's status as it is stored. */
const status = (name: DeliveryStatus) => text(String(DELIVERY_STATUSES.indexOf(name)));
const subscription = (name: SubscriptionStatus) => text(name);
const replay = (name: ReplayStatus) => text(name);
const notice = (type: NoticeType) => text(type);

/** Each constant as an expression in Lua. */
export const CONSTANTS: Readonly<Record<string, string>> = {
  KEY_AUDIT: key(keys.auditKey('')),
  KEY_BY_SUBSCRIPTION: key(keys.bySubscriptionKey('', '')),
  KEY_CLOSING: key(keys.closingKey('')),
  KEY_DELIVERY: key(keys.deliveryKey('', '')),
  KEY_FAILED: key(keys.failedKey('', '')),
  KEY_HELD: key(keys.laneKey('', 'held', '')),
  KEY_NOTICES: key(keys.noticesKey('')),
  KEY_OVERDUE: key(keys.laneKey('', 'overdue', '')),
  KEY_PARKED: key(keys.laneKey('', 'parked', '')),
  KEY_RELEASE_HELD: key(keys.laneIndexKey('', 'held')),
  KEY_RELEASE_OVERDUE: key(keys.laneIndexKey('', 'overdue')),
  KEY_RELEASE_PARKED: key(keys.laneIndexKey('', 'parked')),
  KEY_REPLAY: key(keys.replayKey('', '')),
  KEY_REPLAYING: key(keys.replayingKey('')),
  KEY_REPLAYS: key(keys.replaysKey('')),
  KEY_REPLAYS_OF: key(keys.replaysOfKey('', '')),
  KEY_SUBSCRIPTION: key(keys.subscriptionKey('', '')),
  KEY_SUBSCRIPTIONS: key(keys.subscriptionsKey('', '')),
  KEY_TOPIC: key(keys.topicKey('', '')),
  KEY_WORKERS: key(keys.workersKey('')),
  KEY_WORKERS_SEEN: key(keys.workersSeenKey('')),
  /** Keys of the deliveries with one status; all of them, without the prefix, by status. */
  INDEX_PENDING: key(keys.byStatusKey('', 'pending')),
  INDEX_WAITING: key(keys.byStatusKey('', 'waiting_for_retry')),
  INDEX_HELD: key(keys.byStatusKey('', 'held')),
  INDEX_SUCCEEDED: key(keys.byStatusKey('', 'succeeded')),
  DELIVERY_INDEXES: `{${DELIVERY_STATUSES.map((name) => `[${status(name)}] = '${keys.byStatusKey('', name)}'`).join(', ')}}`,
  PENDING: status('pending'),
  WAITING: status('waiting_for_retry'),
  HELD: status('held'),
  SUCCEEDED: status('succeeded'),
  FAILED: status('failed'),
  HELD_LANE: text('held' satisfies keys.Lane),
  OVERDUE_LANE: text('overdue' satisfies keys.Lane),
  VERDICT_SUCCEEDED: text('succeeded' satisfies Verdict['kind']),
  VERDICT_RETRY: text('retry' satisfies Verdict['kind']),
  ACTIVE: subscription('active'),
  PAUSED: subscription('paused'),
  REFUSED: subscription('refused'),
  DELETED: text(DELETED),
  REPLAY_RUNNING: replay('running'),
  REPLAY_DONE: replay('done'),
  REPLAY_FAILED: replay('failed'),
  REASON_CONSECUTIVE_FAILURES: text('consecutive_failures' satisfies StatusReason),
  REASON_SUBSCRIPTION_DELETED: text('subscription_deleted' satisfies FailureReason),
  NOTICE_DELIVERY_FAILED: notice('delivery.failed'),
  NOTICE_SUBSCRIPTION_PAUSED: notice('subscription.paused'),
  NOTICE_SUBSCRIPTION_REFUSED: notice('subscription.refused'),
  NOTICE_REPLAY_DONE: notice('replay.done'),
  NOTICE_REPLAY_FAILED: notice('replay.failed'),
  ACTION_SUBSCRIPTION_PAUSED: text('subscription.paused' satisfies AuditAction),
  GRACE_MS: String(GRACE_MS),
  MAX_NOTICES: String(MAX_NOTICES),
  HELD_NOW: text(HELD_NOW),
  HOLD_CHUNK: String(HOLD_CHUNK),
  PARK_NEW_FROM: String(PARK_NEW_FROM),
};
