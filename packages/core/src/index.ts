/** What the rest of Posthorn may use of the rules. */

export { DEFAULT_MAX_ATTEMPTS, DEFAULT_RETRY_DELAYS_MS, decide, errorOfStatus, type Verdict } from './decide.ts';
export {
  ATTEMPT_ERRORS,
  type Attempt,
  type AttemptError,
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryStatus,
  FAILURE_REASONS,
  type FailureReason,
  isFinished,
} from './delivery.ts';
export { AppError, type ErrorCode, errorCodes, type FieldError, StartError } from './errors.ts';
export {
  ENVIRONMENTS,
  type Environment,
  EVENT_TYPES,
  type Event,
  type EventType,
  eventBody,
  type PublishedEvent,
  publishedEventSchema,
  SESSION_EVENT_TYPES,
  sessionSnapshotSchema,
  TEST_EVENT_TYPE,
  utcInstant,
} from './event.ts';
export {
  DELIVERY_ID,
  deliveryId,
  EVENT_ID,
  newEventId,
  newSubscriptionId,
  partitionOfDelivery,
  SUBSCRIPTION_ID,
} from './ids.ts';
export { isRawNumber, MAX_JSON_DEPTH, parseJson } from './json.ts';
export { topicsOfEvent, topicsOfSubscription } from './match.ts';
export { partitionOf } from './partition.ts';
export {
  newSubscriptionSchema,
  STATUS_REASONS,
  type StatusReason,
  SUBSCRIPTION_ENVIRONMENTS,
  SUBSCRIPTION_STATUSES,
  type Subscription,
  type SubscriptionEnvironment,
  type SubscriptionStatus,
  subscriptionPatchSchema,
} from './subscription.ts';
