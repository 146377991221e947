/** The operator API (interface 4): what it accepts and returns, for the console, its page and the command line. */
export {
  deliveriesQuerySchema,
  deliveryParamsSchema,
  requestQuerySchema,
  tailQuerySchema,
  tryNowSchema,
} from './requests/deliveries.ts';
export {
  erasureConfirmationSchema,
  erasureParamsSchema,
  erasuresQuerySchema,
  newErasureSchema,
} from './requests/erasures.ts';
export {
  eventParamsSchema,
  eventQuerySchema,
  explainQuerySchema,
  listenQuerySchema,
  timelineQuerySchema,
} from './requests/events.ts';
export { type FiltersOf, MAX_PAGE_LIMIT } from './requests/fields.ts';
export { auditQuerySchema, signInSchema } from './requests/operators.ts';
export {
  newReplaySchema,
  replayBatchParamsSchema,
  replayParamsSchema,
  replaysQuerySchema,
} from './requests/replays.ts';
export {
  bulkResumeSchema,
  failedDeliveriesQuerySchema,
  lookupQuerySchema,
  MAX_LOOKUP_IDS,
  MAX_RESUMED,
  newSubscriptionSchema,
  PAUSE_REASONS,
  rotationSchema,
  signatureCheckRequestSchema,
  subscriptionParamsSchema,
  subscriptionPatchSchema,
  subscriptionsQuerySchema,
  testDeliverySchema,
} from './requests/subscriptions.ts';
export {
  type Delivery,
  type DeliveryRequest,
  type DeliveryWithAttempts,
  deliverySchema,
  deliveryWithAttemptsSchema,
  requestSchema,
  type TailedAttempt,
  type TriedNow,
  tailedAttemptSchema,
  triedNowSchema,
} from './responses/deliveries.ts';
export { type Erasure, erasureSchema } from './responses/erasures.ts';
export {
  type Explanation,
  eventSchema,
  explanationSchema,
  type ListenedEvent,
  listenedEventSchema,
  type PublishedEvent,
  type Timeline,
  timelineSchema,
} from './responses/events.ts';
export { type ListPage, listOf, type Page, pageOf } from './responses/fields.ts';
export { type AuditEntry, auditEntrySchema, type Session, sessionSchema } from './responses/operators.ts';
export {
  type AddressAttempts,
  addressAttemptsSchema,
  type NotWell,
  type Overview,
  overviewSchema,
  WELL_LIMITS,
} from './responses/overview.ts';
export {
  type FailedDeliveries,
  failedDeliveriesSchema,
  type Rehearsal,
  type Replay,
  type ReplayBatch,
  rehearsalSchema,
  replayBatchSchema,
  replaySchema,
  type StartedReplay,
  startedReplaySchema,
} from './responses/replays.ts';
export {
  type BulkResumeResult,
  bulkResumeResultSchema,
  type Health,
  type ResumeResult,
  type SignatureCheck,
  type Subscription,
  type SubscriptionName,
  type SubscriptionNames,
  type SubscriptionsPage,
  type SubscriptionWithSecret,
  signatureCheckSchema,
  subscriptionNamesSchema,
  subscriptionSchema,
  subscriptionsPageSchema,
  subscriptionWithSecretSchema,
  type Validation,
} from './responses/subscriptions.ts';
