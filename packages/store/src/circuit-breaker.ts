/** Stops calls to a partition that does not reply, so that one hung master of a Cluster does not stop the work of the others. */
import { StorageUnavailable, TimeLimitExceeded, withTimeLimit } from '@posthorn/core';
import { Cluster } from 'ioredis';
import type { Store } from './store.ts';

/** Far longer than a command takes, unless its master hangs or fails over. */
const LIMIT_MS = 2_000;

type CircuitBreaker = <T>(name: string, call: () => Promise<T>) => Promise<T>;

/**
 * Returns a function that makes a call to what `name` names, and rejects with `StorageUnavailable` if there is no reply
 * after `limitMs`. Then it rejects at once until a reply comes, even a late one. After each `limitMs` it makes one call
 * all the same, for which nobody waits. So a call that was rejected may still take effect. `now`: milliseconds since any
 * fixed moment.
 */
export function createCircuitBreaker(limitMs: number, now: () => number = () => performance.now()): CircuitBreaker {
  /** When to call again what gave no reply. */
  const callAgainAtMs = new Map<string, number>();
  const tooLate = (name: string) => new StorageUnavailable(`No reply within ${limitMs} ms about ${name}`);
  const callAndNote = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    try {
      const result = await call();
      callAgainAtMs.delete(name);
      return result;
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) callAgainAtMs.delete(name);
      throw error;
    }
  };
  return (name, call) => {
    const againAtMs = callAgainAtMs.get(name);
    const isHung = againAtMs !== undefined;
    if (isHung && now() < againAtMs) return Promise.reject(tooLate(name));
    const calling = callAndNote(name, call);
    if (isHung) {
      callAgainAtMs.set(name, now() + limitMs);
      calling.catch(() => undefined);
      return Promise.reject(tooLate(name));
    }
    return withTimeLimit(limitMs, calling).catch((error: unknown) => {
      if (!(error instanceof TimeLimitExceeded)) throw error;
      callAgainAtMs.set(name, now() + limitMs);
      throw tooLate(name);
    });
  };
}

const breakers = new WeakMap<Store, CircuitBreaker>();

/**
 * Makes a short call to the partition with this prefix. In a Redis Cluster it rejects with `StorageUnavailable` if
 * there is no reply in time, as `createCircuitBreaker` says. On one Redis all partitions hang together, so the call waits.
 */
export function withCircuitBreaker<T>(store: Store, prefix: string, call: () => Promise<T>): Promise<T> {
  if (!(store.redis instanceof Cluster)) return call();
  const breaker = breakers.get(store) ?? createCircuitBreaker(LIMIT_MS);
  breakers.set(store, breaker);
  return breaker(prefix, call);
}
