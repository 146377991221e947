/** What the apps may do with what is stored. */
export { type BegunAttempt, beginAttempt, type Recorded, recordFailure, recordSuccess } from './attempts.ts';
export { type AuditRecord, appendAudit, listAudit } from './audit.ts';
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
export { createDirectory, type Directory, type SubscriptionQuery } from './directory.ts';
export { endDeliveries, heldBefore } from './end-deliveries.ts';
export { eraseFoundEvent } from './erase-found-event.ts';
export { erasureProgress, eventsToErase, findNextEvents, scanningPartitions } from './erasure-events.ts';
export {
  cancelErasure,
  confirmErasure,
  loadErasures,
  loadUncounted,
  MAX_OPEN_ERASURES,
  openErasures,
  removeOpenErasure,
  settleErasure,
  startErasure,
} from './erasures.ts';
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
export {
  announceListeners,
  createFeedWriter,
  decodePublished,
  decodeTailEntry,
  encodePublished,
  encodeTailEntry,
  endOfFeed,
  FEED_START,
  type Feed,
  type FeedPage,
  type PublishedEntry,
  readFeed,
} from './feeds.ts';
export { countProblems, listFailing, listMostHeld, readHealth } from './health.ts';
export {
  deliveryOfJob,
  finishJob,
  type JobToEnd,
  lookForJobs,
  putBackLost,
  type Room,
  takeJobs,
  type WorkerView,
  watchWorkers,
} from './jobs.ts';
export { partitionPrefix } from './keys.ts';
export { addressesToRelease, laneLength, releaseDeliveries, resumingAddresses, sendTrial } from './lanes.ts';
export { freeLeases, giveUpLease, holdLease } from './leases.ts';
export {
  type DeliveryFilter,
  listDeliveries,
  listErasures,
  listReplays,
  listSubscriptions,
  readBacklog,
} from './lists.ts';
export { type FanOutContext, finishFanOuts, makeDeliveries } from './make-deliveries.ts';
export { makeTestDelivery } from './make-test-delivery.ts';
export { createMatcher, type Match, type Matcher } from './matcher.ts';
export {
  addOutageNotice,
  droppedNotices,
  removeNotices,
  reportedDropped,
  type WaitingNotice,
  waitingNotices,
} from './notices.ts';
export { openStore } from './open-store.ts';
export { BadCursor, type Page } from './page.ts';
export { parkJob } from './park-jobs.ts';
export { partitionsWithNotices, partitionsWithWork, partitionsWithWorkers } from './partitions-with.ts';
export { pruneFinished, pruneSucceeded } from './prune.ts';
export { addPublisherUsage } from './publisher-usage.ts';
export { advanceFormat, readFormat } from './raise-format.ts';
export { loadReachedSites, saveReachedSites } from './reached-sites.ts';
export { activeBatches, cancelBatch, loadBatch, loadBatchReplays, startBatch, stepBatch } from './replay-batches.ts';
export { countCovered } from './replay-count.ts';
export { cancelReplay, continueReplay, endUnattempted, unattempted } from './replay-decisions.ts';
export { loadReplays } from './replay-record.ts';
export { type Rehearsal, rehearseReplay } from './replay-rehearsal.ts';
export { activeReplays, type ReplayScope, replayDelivery, replaysOf, startReplay, stepReplay } from './replays.ts';
export { createReplicaWait, type ReplicaWait, TooFewReplicas } from './replicas.ts';
export { rescueJobs } from './rescue-jobs.ts';
export { loadResponses } from './responses.ts';
export { announceRules, readRules } from './rules.ts';
export type { EventRecord, FoundJob, ReplayRefusal, TryNowRefusal } from './scripts.ts';
export { announceSearch, isSearchOn, searchEvents } from './search-index.ts';
export { readServerState, type ServerState } from './server-state.ts';
export { deleteSession, loadSession, saveSession } from './sessions.ts';
export { type SucceededDelivery, shortenEvents } from './shorten-events.ts';
export {
  type AddressAttempts,
  type AddressCounts,
  type AttemptSeries,
  addCounts,
  type Counts,
  LONG_MS,
  rankAddresses,
  readAddressAttempts,
  readAttempts,
  readP99,
} from './stats.ts';
export { allPartitions, type Store } from './store.ts';
export { type CreatedDelivery, createDeliveries, storeEvent } from './store-event.ts';
export { MAX_DELIVERIES } from './store-events.ts';
export type { ProcessIdentity } from './stored-format.ts';
export {
  changeSubscription,
  deleteSubscription,
  loadSubscriptions,
  newSubscription,
  readNames,
  type StoredSubscription,
  saveSubscription,
  sealedSecretsAt,
} from './subscriptions.ts';
export { makeDueNow } from './try-now.ts';
export { findUnavailable, type UnavailablePartition } from './unavailable-partitions.ts';
export { aliveWorkers, deregisterWorker, sendHeartbeat, type WorkerState } from './workers.ts';
