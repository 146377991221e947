/**
 * Receives Posthorn's webhooks. It needs nothing but Web Crypto. Adapters for Node's servers: `./node`, `./fastify`.
 */
export { fetchHandler } from './adapters/fetch.ts';
export {
  parseEvent,
  SESSION_EVENT_TYPES,
  type SessionEvent,
  type SessionEventType,
  type SessionSnapshot,
  type TestEvent,
  type WebhookEvent,
} from './events.ts';
export {
  createReceiver,
  type DeliveryInfo,
  type ReceivedRequest,
  type Receiver,
  type ReceiverOptions,
  type Reply,
} from './receiver.ts';
export { DEFAULT_TOLERANCE_S, type SignatureCheck, verifySignature } from './signature.ts';
export { memoryStore, type ReceiverStore, type RedisStoreOptions, redisStore } from './stores.ts';
