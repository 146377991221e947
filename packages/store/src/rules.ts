/** The rules of the workers, as they are stored for the other apps. */
import { DEFAULT_MAX_ATTEMPTS, DEFAULT_PAUSE_AFTER } from '@posthorn/core';
import { installationKey } from './keys.ts';
import type { Store } from './store.ts';

/** Rules that the workers apply and the other apps show. */
export interface Rules {
  maxAttempts: number;
  pauseAfter: number;
  /** Null until a worker of a version that says it has started. */
  attemptTimeoutMs: number | null;
  /**
   * Held and overdue deliveries released per second to one address. Null until a worker of a version that says it has
   * started.
   */
  releaseRate: number | null;
}

/** Stores the workers' rules for the other apps. */
export async function announceRules(store: Store, rules: Record<keyof Rules, number>): Promise<void> {
  await store.redis.hset(installationKey(store.prefix), {
    max_attempts: rules.maxAttempts,
    pause_after: rules.pauseAfter,
    attempt_timeout: rules.attemptTimeoutMs,
    release_rate: rules.releaseRate,
  });
}

/** The workers' rules; those of the specification (section 8) until a worker has stored its own. */
export async function readRules(store: Store): Promise<Rules> {
  const key = installationKey(store.prefix);
  const [maxAttempts, pauseAfter, timeout, releaseRate] = await store.redis.hmget(
    key,
    'max_attempts',
    'pause_after',
    'attempt_timeout',
    'release_rate',
  );
  return {
    maxAttempts: Number(maxAttempts ?? DEFAULT_MAX_ATTEMPTS),
    pauseAfter: Number(pauseAfter ?? DEFAULT_PAUSE_AFTER),
    attemptTimeoutMs: timeout ? Number(timeout) : null,
    releaseRate: releaseRate ? Number(releaseRate) : null,
  };
}
