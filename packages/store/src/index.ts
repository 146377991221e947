/** What the apps may do with what is stored. */

export * from './attempts.ts';
export * from './audit.ts';
export { checkSecrets } from './check-secrets.ts';
export { withCircuitBreaker } from './circuit-breaker.ts';
export { connectRedis, onDisconnect } from './connect-redis.ts';
export {
  clearDeletedSubscription,
  closingSubscriptions,
  deletionOf,
  unfinishedDeliveries,
} from './deleted-subscriptions.ts';
export { deliveriesOfEvent } from './deliveries-of-event.ts';
export { loadDeliveries, type StoredDelivery } from './delivery-record.ts';
export * from './directory.ts';
export { endDeliveries, heldBefore } from './end-deliveries.ts';
export { eraseFoundEvent } from './erase-found-event.ts';
export { erasureProgress, eventsToErase, findNextEvents, scanningPartitions } from './erasure-events.ts';
export * from './erasures.ts';
export { decodeEvent, type StoredEvent } from './event-record.ts';
export {
  confirmFanOut,
  findEvents,
  findMatches,
  interruptedFanOuts,
  keepEvent,
  loadEvent,
  prefixOfEvent,
} from './events.ts';
export { readCase } from './explain.ts';
export * from './feeds.ts';
export * from './health.ts';
export * from './jobs.ts';
export { partitionPrefix } from './keys.ts';
export * from './lanes.ts';
export { freeLeases, giveUpLease, holdLease } from './leases.ts';
export * from './lists.ts';
export { type FanOutContext, finishFanOuts, makeDeliveries } from './make-deliveries.ts';
export { makeTestDelivery } from './make-test-delivery.ts';
export { createMatcher, type Match, type Matcher } from './matcher.ts';
export * from './notices.ts';
export { openStore } from './open-store.ts';
export { BadCursor, type Page } from './page.ts';
export { parkJob } from './park-jobs.ts';
export { partitionsWithNotices, partitionsWithWork, partitionsWithWorkers } from './partitions-with.ts';
export { pruneFinished, pruneSucceeded } from './prune.ts';
export * from './publisher-usage.ts';
export { advanceFormat, readFormat } from './raise-format.ts';
export * from './reached-sites.ts';
export * from './replay-batches.ts';
export * from './replay-count.ts';
export * from './replay-decisions.ts';
export { loadReplays } from './replay-record.ts';
export * from './replay-rehearsal.ts';
export * from './replays.ts';
export * from './replicas.ts';
export { rescueJobs } from './rescue-jobs.ts';
export { loadResponses } from './responses.ts';
export { announceRules, readRules } from './rules.ts';
export type { EventRecord, FoundJob, NextJob, ReplayRefusal, TryNowRefusal } from './scripts.ts';
export * from './search-index.ts';
export { readServerState, type ServerState } from './server-state.ts';
export * from './sessions.ts';
export { type SucceededDelivery, shortenEvents } from './shorten-events.ts';
export * from './stats.ts';
export { allPartitions, type Store } from './store.ts';
export { type CreatedDelivery, createDeliveries, storeEvent } from './store-event.ts';
export { MAX_DELIVERIES } from './store-events.ts';
export type { ProcessIdentity } from './stored-format.ts';
export * from './subscriptions.ts';
export { makeDueNow } from './try-now.ts';
export { findUnavailable, type UnavailablePartition } from './unavailable-partitions.ts';
export * from './workers.ts';
