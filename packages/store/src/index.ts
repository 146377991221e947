/** What the apps may do with what is stored. */

export { type AuditRecord, appendAudit, listAudit } from './audit.ts';
export { afterChange, knowingChanges } from './changes.ts';
export { loadOthers, UnreadableRecord } from './decode-named.ts';
export { type BegunAttempt, beginAttempt, type Recorded, recordFailure, recordSuccess } from './deliveries/attempts.ts';
export { loadDeliveries, type StoredDelivery } from './deliveries/delivery-record.ts';
export { endDeliveries, heldBefore } from './deliveries/end-deliveries.ts';
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
} from './deliveries/jobs.ts';
export { addressesToRelease, laneLength, releaseDeliveries, resumingAddresses, sendTrial } from './deliveries/lanes.ts';
export { makeTestDelivery } from './deliveries/make-test-delivery.ts';
export { parkJob } from './deliveries/park-jobs.ts';
export { rescueJobs } from './deliveries/rescue-jobs.ts';
export { loadResponses } from './deliveries/responses.ts';
export { tryNow } from './deliveries/try-now.ts';
export { createDirectory, type Directory, type SubscriptionQuery } from './directory/directory.ts';
export { eraseAgain, eraseFoundEvent } from './erasures/erase-found-event.ts';
export {
  erasureProgress,
  eventsToErase,
  type Finder,
  findByEventId,
  findNextEvents,
  type Place,
  readPlace,
  retryUnreadable,
  unreadableToRetry,
} from './erasures/erasure-events.ts';
export {
  cancelErasure,
  cancelRunningErasure,
  confirmErasure,
  loadErasures,
  loadUncounted,
  MAX_OPEN_ERASURES,
  openErasures,
  removeOpenErasure,
  settleErasure,
  startErasure,
} from './erasures/erasures.ts';
export { deliveriesOfEvent } from './events/deliveries-of-event.ts';
export { decodeEvent, type StoredEvent } from './events/event-record.ts';
export {
  confirmFanOut,
  findEvents,
  findMatches,
  loadEvent,
  prefixOfEvent,
} from './events/events.ts';
export { type FanOutContext, finishFanOuts, makeDeliveries } from './events/make-deliveries.ts';
export { createMatcher, type Match, type Matcher } from './events/matcher.ts';
export { announceSearch, type FoundEvent, isSearchOn, searchEvents } from './events/search-index.ts';
export { type SucceededDelivery, shortenEvents } from './events/shorten-events.ts';
export { type CreatedDelivery, createDeliveries, storeEvent } from './events/store-event.ts';
export { MAX_DELIVERIES } from './events/store-events.ts';
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
  WRITERS_KNOW_AFTER_MS,
} from './feeds.ts';
export { advanceFormat, readFormat } from './format/raise-format.ts';
export type { ProcessIdentity } from './format/stored-format.ts';
export { partitionPrefix } from './keys.ts';
export { freeLeases, giveUpLease, holdLease } from './leases.ts';
export { countStored } from './lists/count-stored.ts';
export { readCase } from './lists/explain.ts';
export {
  allSubscriptions,
  type DeliveryFilter,
  listDeliveries,
  listErasures,
  listReplays,
  listSubscriptions,
} from './lists/lists.ts';
export { BadCursor, type Page } from './lists/page.ts';
export {
  addOutageNotice,
  droppedNotices,
  oldestNotice,
  removeNotices,
  reportedDropped,
  type WaitingNotice,
  waitingNotices,
} from './notices.ts';
export { openStore } from './open-store.ts';
export { partitionsWithNotices, partitionsWithWork, partitionsWithWorkers } from './partitions-with.ts';
export { pruneFinished, pruneSucceeded } from './prune.ts';
export { addPublisherUsage } from './publisher-usage.ts';
export { loadReachedSites, saveReachedSites } from './reached-sites.ts';
export { withCircuitBreaker } from './redis/circuit-breaker.ts';
export { connectRedis, onDisconnect } from './redis/connect-redis.ts';
export { createReplicaWait, type ReplicaWait, TooFewReplicas } from './redis/replicas.ts';
export { readServerState, type ServerState } from './redis/server-state.ts';
export { checkAnyPartition, findUnavailable, type UnavailablePartition } from './redis/unavailable-partitions.ts';
export {
  activeBatches,
  cancelBatch,
  loadBatch,
  loadBatchReplays,
  startBatch,
  stepBatch,
} from './replays/replay-batches.ts';
export { countCovered, type ReplayScope } from './replays/replay-count.ts';
export { cancelReplay, continueReplay, stepCancellation } from './replays/replay-decisions.ts';
export { loadReplays } from './replays/replay-record.ts';
export { type Rehearsal, rehearseReplay } from './replays/replay-rehearsal.ts';
export {
  activeReplays,
  replayDelivery,
  replaysOf,
  startReplay,
  stepReplay,
} from './replays/replays.ts';
export { announceRules, readRules } from './rules.ts';
export type { EventRecord, FoundJob, ReplayRefusal, TryNowRefusal } from './scripts.ts';
export { deleteSession, loadSession, saveSession } from './sessions.ts';
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
export { checkSecrets } from './subscriptions/check-secrets.ts';
export {
  clearDeletedSubscription,
  closingSubscriptions,
  deletionOf,
  unfinishedDeliveries,
} from './subscriptions/deleted-subscriptions.ts';
export {
  countFailingSince,
  countProblems,
  type LastOutcome,
  listFailing,
  listMostHeld,
  oldestPause,
  readHealth,
  readLastOutcome,
} from './subscriptions/health.ts';
export {
  changeSubscription,
  deleteSubscription,
  loadSubscriptions,
  newSubscription,
  readNames,
  type StoredSubscription,
  saveSubscription,
  sealedSecretsAt,
} from './subscriptions/subscriptions.ts';
export { aliveWorkers, deregisterWorker, sendHeartbeat, type WorkerState } from './workers.ts';
