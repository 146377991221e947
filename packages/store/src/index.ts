/** What the apps may do with what is stored. */
export {
  addressesToRelease,
  type Begun,
  beginAttempt,
  type CreatedDelivery,
  createDeliveries,
  type DeliveryJob,
  endDeliveries,
  laneLength,
  loadDeliveries,
  parkDelivery,
  type Recorded,
  recordAttempt,
  releaseDeliveries,
  renewJobs,
  type StoredDelivery,
  storeEvent,
} from './deliveries.ts';
export {
  confirmFanOut,
  findMatches,
  interruptedFanOuts,
  keepEvent,
  loadEvent,
  type StoredEvent,
} from './events.ts';
export type { Lane } from './keys.ts';
export {
  BadCursor,
  type DeliveryFilter,
  listDeliveries,
  listSubscriptions,
  type Page,
  readBacklog,
} from './lists.ts';
export {
  allPartitions,
  announceMaxAttempts,
  baseOf,
  checkWritable,
  connectRedis,
  openStore,
  type RedisSettings,
  type Store,
} from './store.ts';
export {
  changeSubscription,
  deleteSubscription,
  heldDeliveries,
  loadSubscriptions,
  newSubscription,
  type StoredSubscription,
  saveSubscription,
} from './subscriptions.ts';
export {
  closeSubscription,
  closingSubscriptions,
  expectedJobs,
  giveUpLease,
  heldBefore,
  holdLease,
  trimIndex,
} from './upkeep.ts';
