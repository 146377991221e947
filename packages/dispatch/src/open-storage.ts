/** Opens what the functions of this package work with: the store, and the producer of the queue. */
import { createProducer } from '@posthorn/queue';
import { openStore, readBacklog as readStored } from '@posthorn/store';
import type { DispatchContext } from './context.ts';

/** A caller waits for the response: a command fails if Redis does not reply in this time. */
const FAIL_FAST_AFTER_MS = 5_000;

/** Opens the storage of an app that serves callers. Nothing is sent to Redis before `storage` starts. */
export function openStorage(settings: Parameters<typeof openStore>[0], logger: DispatchContext['logger']) {
  const storage = openStore(settings, {
    failFastAfterMs: FAIL_FAST_AFTER_MS,
    onError: (err) => logger.warn({ err }, 'redis.failed'),
    onWarning: (text) => logger.warn({}, text),
  });
  const { store, partitionPrefixes, onError } = storage;
  return { storage, store, producer: createProducer({ redis: store.redis, partitionPrefixes, onError }) };
}

/**
 * Resolves with counts of what is in Redis, jobs included. One read comes after the other: with both at once, so that BullMQ's script and
 * other commands shared an automatic pipeline, ioredis threw outside of any promise (`results[i] is not iterable`) when a master returned.
 */
export async function readBacklog({ store, producer }: Pick<DispatchContext, 'store' | 'producer'>, nowMs: number) {
  const stored = await readStored(store, nowMs);
  return { ...stored, jobs: { ...(await producer.counts()) } };
}
