/** Subscriptions, deliveries and events as the operator API shows them (interface 4). */
import { parseJson } from '@posthorn/core';
import {
  heldDeliveries,
  type Store,
  type StoredDelivery,
  type StoredEvent,
  type StoredSubscription,
} from '@posthorn/store';

/** A subscription, without its secret. */
export async function presentSubscription(store: Store, subscription: StoredSubscription) {
  return {
    id: subscription.id,
    url: subscription.url,
    event_types: subscription.eventTypes,
    environment: subscription.environment,
    description: subscription.description,
    status: subscription.status,
    status_reason: subscription.statusReason,
    validated: subscription.status === 'active' || subscription.status === 'paused',
    paused: subscription.status === 'paused',
    consecutive_failures: subscription.consecutiveFailures,
    held_deliveries: await heldDeliveries(store, subscription.id),
    created_at: instant(subscription.createdAtMs),
    updated_at: instant(subscription.updatedAtMs),
  };
}

/** A delivery as in a list. */
export function presentDelivery(delivery: StoredDelivery, retentionMs: number) {
  return {
    id: delivery.id,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    environment: delivery.environment,
    subscription_id: delivery.subscriptionId,
    status: delivery.status,
    attempt_count: delivery.attemptCount,
    max_attempts: delivery.maxAttempts,
    next_attempt_at: instant(delivery.nextAttemptAtMs),
    replay_of: delivery.replayOf,
    failure_reason: delivery.failureReason,
    created_at: instant(delivery.createdAtMs),
    finished_at: instant(delivery.finishedAtMs),
    replayable_until:
      delivery.status === 'failed' && delivery.finishedAtMs !== null
        ? instant(delivery.finishedAtMs + retentionMs)
        : null,
  };
}

/** A delivery read alone: with its attempts. */
export function presentDeliveryWithAttempts(delivery: StoredDelivery, retentionMs: number) {
  return {
    ...presentDelivery(delivery, retentionMs),
    attempts: delivery.attempts.map((attempt) => ({
      number: attempt.number,
      started_at: instant(attempt.startedAtMs),
      duration_ms: attempt.durationMs,
      outcome: attempt.error === null ? 'succeeded' : 'failed',
      status_code: attempt.statusCode,
      error: attempt.error,
    })),
  };
}

/** An event as it is delivered, and when it was accepted. */
export function presentEvent({ event, acceptedAtMs }: StoredEvent) {
  return {
    id: event.id,
    type: event.type,
    created_at: event.createdAt,
    environment: event.environment,
    data: parseJson(event.dataJson),
    accepted_at: instant(acceptedAtMs),
  };
}

function instant(ms: number): string;
function instant(ms: number | null): string | null;
function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
