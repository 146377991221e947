/** Decides how long a delivery waits that can't be signed because no key of this worker opens its address's secret. */
import { atMost } from '@posthorn/core';
import type { Clock, Logger } from '@posthorn/runtime';
import type { SealBroken } from '@posthorn/signing';
import { LRUCache } from 'lru-cache';

const MIN_WAIT_MS = 15_000;
const MAX_WAIT_MS = 300_000;
/** A secret that was not found unreadable for this long has been readable meanwhile, or had no deliveries. */
const READABLE_AGAIN_MS = 2 * MAX_WAIT_MS;
const MAX_ADDRESSES = 10_000;

export interface UnreadableSecrets {
  /**
   * Returns when to try a delivery of this address again. The longer its secret has been unreadable, the longer the
   * wait, so that its backlog does not take the slots of others. Logs the error at most once per wait and address.
   */
  retryAtMs(subscriptionId: string, error: SealBroken): number;
}

export function createUnreadableSecrets(clock: Clock, logger: Pick<Logger, 'error'>): UnreadableSecrets {
  const known = new LRUCache<string, { sinceMs: number; lastMs: number; quietUntilMs: number }>(atMost(MAX_ADDRESSES));
  return {
    retryAtMs(subscriptionId, err) {
      const nowMs = clock.now();
      const before = known.get(subscriptionId);
      const isNew = !before || nowMs - before.lastMs > READABLE_AGAIN_MS;
      const { sinceMs, quietUntilMs } = isNew ? { sinceMs: nowMs, quietUntilMs: nowMs } : before;
      const retryAtMs = nowMs + Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, nowMs - sinceMs));
      const isQuiet = nowMs < quietUntilMs;
      known.set(subscriptionId, { sinceMs, lastMs: nowMs, quietUntilMs: isQuiet ? quietUntilMs : retryAtMs });
      if (!isQuiet) logger.error({ err, subscription_id: subscriptionId }, 'secret.unreadable');
      return retryAtMs;
    },
  };
}
