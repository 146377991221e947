/** What the apps may do with what is stored. */

export {
  type Begun,
  beginAttempt,
  parkDelivery,
  recordAttempt,
} from './attempts.ts';
export { type AuditRecord, appendAudit, listAudit } from './audit.ts';
export { loadDeliveries, type StoredDelivery } from './delivery-record.ts';
export {
  confirmFanOut,
  findEvents,
  findMatches,
  interruptedFanOuts,
  keepEvent,
  loadEvent,
  type StoredEvent,
} from './events.ts';
export { type Duty, type Lane, partitionPrefix } from './keys.ts';
export { addressesToRelease, endDeliveries, laneLength, releaseDeliveries, rescueJobs } from './lanes.ts';
export { listDeliveries, listReplays, listSubscriptions, readBacklog } from './lists.ts';
export { type CreatedDelivery, createDeliveries, storeEvent } from './new-deliveries.ts';
export { addOutageNotice, removeNotices, type WaitingNotice, waitingNotices } from './notices.ts';
export { BadCursor, type Page } from './page.ts';
export { addPublisherUsage, redisCapacity } from './publisher-usage.ts';
export { loadReachedSites, saveReachedSites } from './reached-sites.ts';
export {
  countFailed,
  loadReplays,
  replayDelivery,
  replaysOf,
  runningReplays,
  startReplay,
  stepReplay,
} from './replays.ts';
export { createReplicaWait, TooFewReplicas } from './replicas.ts';
export type { ReplayRefusal } from './scripts.ts';
export { deleteSession, loadSession, saveSession } from './sessions.ts';
export {
  type AddressAttempts,
  type AttemptSeries,
  addCounts,
  aliveWorkers,
  type Counts,
  deregisterWorker,
  type Period,
  rankAddresses,
  readAddressAttempts,
  readAttempts,
  sendHeartbeat,
} from './stats.ts';
export {
  allPartitions,
  announceRules,
  connectRedis,
  openStore,
  type RedisSettings,
  type Rules,
  readRules,
  type Store,
} from './store.ts';
export {
  changeSubscription,
  deleteSubscription,
  loadSubscriptions,
  newSubscription,
  type StoredSubscription,
  saveSubscription,
  sealedSecretsAt,
} from './subscriptions.ts';
export {
  clearDeletedSubscription,
  closingSubscriptions,
  expectedJobs,
  giveUpLease,
  heldBefore,
  holdLease,
  pruneFinished,
  unfinishedDeliveries,
} from './upkeep.ts';
