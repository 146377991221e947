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
  readP99,
  readRules,
  type Store,
  type StoredSubscription,
  UnreadableRecord,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { instant } from './instant.ts';

/**
 * Returns the health of addresses as the API shows it, in their order. Takes two round trips to Redis, however many
 * there are.
 */
export async function serializeHealth(
  context: ConsoleContext,
  subscriptions: readonly StoredSubscription[],
): Promise<api.Health[]> {
  const { store, clock } = context;
  const nowMs = clock.now();
  const ids = subscriptions.map(({ id }) => id);
  const [healths, slowest] = await Promise.all([
    readHealth(store, ids, nowMs),
    Promise.all(ids.map((id) => readP99(store, id, nowMs))),
  ]);
  const found = subscriptions.map((subscription, i) => ({
    subscription,
    health: healths[i] ?? UNKNOWN_HEALTH,
    p99Ms: slowest[i] ?? null,
  }));
  return await describeHealth(store, found, nowMs);
}

/** The health of an address as it was read. */
export interface FoundHealth {
  subscription: StoredSubscription;
  health: AddressHealth;
  /** The 99th percentile of the durations of its attempts; null if that is not slow, or was not read. */
  p99Ms: number | null;
}

/** Serializes healths that have been read, in their order, with the verdicts. Takes one round trip to Redis. */
export async function describeHealth(
  store: Store,
  found: readonly FoundHealth[],
  nowMs: number,
): Promise<api.Health[]> {
  const isSlow = found.some(({ p99Ms }) => p99Ms !== null);
  const [rules, ...cameBack] = await Promise.all([
    isSlow ? readRules(store) : null,
    ...found.map(({ subscription, health }) => health.error && loadNewest(store, subscription.id, health.error)),
  ]);
  return found.map((one, i) => serializeFound(one, cameBack[i], rules?.attemptTimeoutMs ?? null, nowMs));
}

function serializeFound(
  { subscription, health, p99Ms }: FoundHealth,
  cameBack: CameBack | null | undefined,
  attemptTimeoutMs: number | null,
  nowMs: number,
): api.Health {
  const verdict = verdictOn(
    {
      status: subscription.status,
      statusReason: subscription.statusReason,
      health,
      rotatedAtMs: subscription.secretRotatedAtMs,
      previousSecretUntilMs: subscription.previousSecretUntilMs || null,
      p99Ms,
      attemptTimeoutMs,
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

/**
 * What came back from the newest attempt that failed like this, if it was kept. Throws `UnreadableRecord` of the
 * subscription, which is what a list leaves out.
 */
async function loadNewest(
  store: Store,
  subscriptionId: string,
  { deliveryId, attemptNumber }: AddressError,
): Promise<CameBack | undefined> {
  const responses = await loadResponses(store, deliveryId).catch((error: unknown) => {
    throw error instanceof UnreadableRecord ? new UnreadableRecord('health of', subscriptionId, error) : error;
  });
  return responses.get(attemptNumber);
}
