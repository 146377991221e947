/**
 * Stops calls to a partition that does not reply or can't be reached, so that one hung master of a Cluster does not
 * stop the work of the others.
 */
import { knownOrNew, PartitionUnavailable, StorageUnavailable, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { Cluster } from 'ioredis';
import type { Store } from '../store.ts';

/** Far longer than a command takes, unless its master hangs or fails over. */
const LIMIT_MS = 2_000;

type CircuitBreaker = <T>(name: string, call: () => Promise<T>) => Promise<T>;

/**
 * Returns a function that makes a call to what `name` names, and rejects with `StorageUnavailable` if there is no reply
 * after `limitMs`. After that, or after a call that could not be made, it rejects at once until a reply comes, even a
 * late one. After each `limitMs` it makes one call all the same, for which nobody waits. So a call that was rejected
 * may still take effect. `now`: milliseconds since any fixed moment.
 */
export function createCircuitBreaker(limitMs: number, now: () => number = () => performance.now()): CircuitBreaker {
  /** Why calls are refused, and when to call again. */
  const refusals = new Map<string, { error: unknown; untilMs: number }>();
  const refuse = (name: string, error: unknown) => {
    refusals.set(name, { error, untilMs: now() + limitMs });
    return Promise.reject(error);
  };
  const callAndNote = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      refusals.delete(name);
      return result;
    } catch (error) {
      if (!isReply(error)) return await refuse(name, error);
      refusals.delete(name);
      throw error;
    }
  };
  return (name, call) => {
    const refusal = refusals.get(name);
    if (refusal && now() < refusal.untilMs) return Promise.reject(refusal.error);
    const calling = callAndNote(name, call);
    if (refusal) {
      calling.catch(() => undefined);
      return refuse(name, refusal.error);
    }
    return withTimeLimit(limitMs, calling).catch((error: unknown) => {
      if (!(error instanceof TimeLimitExceeded)) throw error;
      return refuse(name, new StorageUnavailable(`No reply within ${limitMs} ms about ${name}`));
    });
  };
}

/** Whether an error came from Redis: it responds, although it may be full, or have moved the key. */
function isReply(error: unknown): boolean {
  return !(error instanceof StorageUnavailable) || (error.cause instanceof Error && error.cause.name === 'ReplyError');
}

const breakers = new WeakMap<Store, CircuitBreaker>();

/**
 * Makes a short call to the partition with this prefix. In a Redis Cluster it rejects with `PartitionUnavailable` if
 * there is no reply in time, as `createCircuitBreaker` says. On one Redis all partitions hang together, so the call
 * waits.
 */
export async function withCircuitBreaker<T>(store: Store, prefix: string, call: () => Promise<T>): Promise<T> {
  if (!(store.redis instanceof Cluster)) return await call();
  try {
    return await knownOrNew(breakers, store, () => createCircuitBreaker(LIMIT_MS))(prefix, call);
  } catch (error) {
    throw error instanceof StorageUnavailable ? new PartitionUnavailable(error.message, error.cause) : error;
  }
}
