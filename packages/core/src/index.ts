/** What the rest of Posthorn may use of the rules. */

export {
  type AddressEvent,
  type AddressFinding,
  type AddressState,
  NEW_ADDRESS,
  nextAddressState,
} from './address-state.ts';
export { AUDIT_ACTIONS, type AuditAction, type AuditEntry } from './audit.ts';
export {
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_PAUSE_AFTER,
  DEFAULT_RETRY_DELAYS_MS,
  decide,
  errorOfStatus,
  type Verdict,
} from './decide.ts';
export {
  ATTEMPT_ERRORS,
  type Attempt,
  type AttemptError,
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryJob,
  type DeliveryStatus,
  FAILURE_REASONS,
  type FailureReason,
  isFinished,
} from './delivery.ts';
export { durationBucket, durationPercentile } from './durations.ts';
export {
  AppError,
  type ErrorCode,
  errorCodes,
  type FieldError,
  type FieldErrors,
  StartError,
  StorageUnavailable,
} from './errors.ts';
export {
  ENVIRONMENTS,
  type Environment,
  EVENT_TYPES,
  type Event,
  type EventType,
  eventBody,
  newTestEvent,
  type PublishedEvent,
  publishedEventSchema,
  SESSION_EVENT_TYPES,
  sessionSnapshotSchema,
  TEST_EVENT_TYPE,
} from './event.ts';
export {
  DELIVERY_ID,
  deliveryId,
  deliveryIdPrefix,
  EVENT_ID,
  type EventRef,
  eventIdOf,
  eventRef,
  newEventId,
  newReplayId,
  newSubscriptionId,
  partitionOfId,
  REPLAY_ID,
  SUBSCRIPTION_ID,
} from './ids.ts';
export { isRawNumber, MAX_JSON_DEPTH, parseJson } from './json.ts';
export { topicsOfEvent, topicsOfSubscription } from './match.ts';
export { NOTICE_TYPES, type Notice, type NoticeType } from './notice.ts';
export { partitionOf } from './partition.ts';
export {
  REPLAY_STATUSES,
  type Replay,
  type ReplayStatus,
  replayableUntilMs,
} from './replay.ts';
export {
  OWN_SECRET,
  STATUS_REASONS,
  type StatusReason,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type Subscription,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
} from './subscription.ts';
export { instantMsSchema, parseDurationMs, utcInstant } from './time.ts';
