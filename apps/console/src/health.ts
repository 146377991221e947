/** Serializes the health of addresses, with the verdict on each. */
import {
  type AddressError,
  type AddressHealth,
  type CameBack,
  responseMessage,
  UNKNOWN_HEALTH,
  verdictOn,
} from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import {
  loadResponses,
  readHealth,
  readRules,
  readSlowest,
  type Store,
  type StoredSubscription,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { instant } from './instant.ts';

/** Returns the health of an address as the API shows it. */
export async function serializeHealth(context: ConsoleContext, subscription: StoredSubscription): Promise<api.Health> {
  const { store, clock } = context;
  const nowMs = clock.now();
  const [[health = UNKNOWN_HEALTH], p99Ms] = await Promise.all([
    readHealth(store, [subscription.id], nowMs),
    readSlowest(store, subscription.id, nowMs),
  ]);
  return await describeHealth(context, subscription, health, p99Ms, nowMs);
}

/** Serializes a health that has been read. `p99Ms`: what 99 % of its attempts stay within, if that is slow. */
export async function describeHealth(
  { store }: ConsoleContext,
  subscription: StoredSubscription,
  health: AddressHealth,
  p99Ms: number | null,
  nowMs: number,
): Promise<api.Health> {
  const cameBack = health.error && (await loadNewest(store, health.error));
  const verdict = verdictOn(
    {
      status: subscription.status,
      statusReason: subscription.statusReason,
      health,
      rotatedAtMs: subscription.secretRotatedAtMs,
      previousSecretUntilMs: subscription.previousSecretUntilMs || null,
      p99Ms,
      attemptTimeoutMs: p99Ms === null ? null : (await readRules(store)).attemptTimeoutMs,
      certificateValidToMs: cameBack?.connection?.certificate?.validToMs ?? null,
    },
    nowMs,
  );
  return {
    state: health.state,
    failing_since: instant(health.failingSinceMs),
    failed_in_a_row: health.failedInARow,
    recent: health.recent,
    last_succeeded_at: instant(health.lastSucceededAtMs),
    error: health.error && {
      label: health.error.label,
      message: cameBack?.response ? responseMessage(cameBack.response) : null,
      count: health.error.count,
      since: instant(health.error.sinceMs),
    },
    verdict,
  };
}

/** What came back from the newest attempt that failed like this, if it was kept. */
async function loadNewest(store: Store, { deliveryId, attemptNumber }: AddressError): Promise<CameBack | undefined> {
  return (await loadResponses(store, deliveryId)).get(attemptNumber);
}
