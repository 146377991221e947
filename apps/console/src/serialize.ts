/** Converts records to what the operator API returns (interface 4). */
import {
  type CameBack,
  type Environment,
  type Erasure,
  parseJson,
  type Replay,
  replayableUntilMs,
  summarizeAudit,
  type Validation,
} from '@posthorn/core';
import type * as api from '@posthorn/operator-api';
import { SealBroken, type SecretBox } from '@posthorn/signing';
import {
  type AuditRecord,
  laneLength,
  type Page,
  type StoredDelivery,
  type StoredEvent,
  type StoredSubscription,
  sealedSecretsAt,
  UnreadableRecord,
} from '@posthorn/store';
import type { ConsoleContext } from './context.ts';
import { serializeHealth } from './health.ts';
import { instant } from './instant.ts';

export async function serializeSubscription(
  context: ConsoleContext,
  subscription: StoredSubscription,
): Promise<api.Subscription> {
  const [serialized] = await serializeSubscriptions(context, [subscription]);
  return serialized!;
}

/**
 * Why a subscription has its status. While it resumes, the reason of its pause is kept: it counts if the trial fails.
 */
export function reasonOf({ resuming, statusReason }: Pick<StoredSubscription, 'resuming' | 'statusReason'>) {
  return resuming ? null : statusReason;
}

/**
 * Serializes subscriptions for lists, in their order: without what came back from their validations, which can be long.
 * Takes two round trips to Redis, however many there are.
 */
export async function serializeListedSubscriptions(
  context: ConsoleContext,
  subscriptions: readonly StoredSubscription[],
): Promise<api.Subscription[]> {
  const serialized = await serializeSubscriptions(context, subscriptions);
  return serialized.map(({ last_validation: validation, ...rest }) => ({
    ...rest,
    last_validation: validation && { ...validation, response: null },
  }));
}

async function serializeSubscriptions(
  context: ConsoleContext,
  subscriptions: readonly StoredSubscription[],
): Promise<api.Subscription[]> {
  const { store, clock } = context;
  const lengths = (lane: 'held' | 'parked') => Promise.all(subscriptions.map(({ id }) => laneLength(store, lane, id)));
  const [held, parked, healths] = await Promise.all([
    lengths('held'),
    lengths('parked'),
    serializeHealth(context, subscriptions),
  ]);
  const nowMs = clock.now();
  return subscriptions.map((subscription, i) =>
    serializeRead(subscription, { held: held[i]!, parked: parked[i]! }, healths[i]!, nowMs),
  );
}

function serializeRead(
  subscription: StoredSubscription,
  { held, parked }: { held: number; parked: number },
  health: api.Health,
  nowMs: number,
): api.Subscription {
  const { resuming, lastResume } = subscription;
  const overlaps = sealedSecretsAt(subscription, nowMs).length > 1;
  return {
    id: subscription.id,
    key: subscription.key,
    url: subscription.url,
    event_types: subscription.eventTypes,
    environment: subscription.environment,
    description: subscription.description,
    status: subscription.status,
    status_reason: reasonOf(subscription),
    validated: subscription.status === 'active' || subscription.status === 'paused',
    paused: subscription.status === 'paused',
    paused_since: instant(subscription.pausedAtMs),
    resuming,
    last_resume: lastResume && {
      at: instant(lastResume.atMs),
      outcome: lastResume.outcome,
      delivery_id: lastResume.deliveryId,
    },
    consecutive_failures: resuming ? 0 : subscription.consecutiveFailures,
    held_deliveries: held,
    parked_deliveries: parked,
    health,
    last_validation: subscription.lastValidation && serializeValidation(subscription.lastValidation),
    previous_secret_until: overlaps ? instant(subscription.previousSecretUntilMs) : null,
    created_at: instant(subscription.createdAtMs),
    updated_at: instant(subscription.updatedAtMs),
  };
}

function serializeValidation(validation: Validation): api.Validation {
  const { atMs, outcome, statusCode, error } = validation;
  return { at: instant(atMs), outcome, status_code: statusCode, error, ...serializeCameBack(validation) };
}

/** Serializes a delivery for lists. */
export function serializeDelivery(delivery: StoredDelivery, retentionMs: number): api.Delivery {
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
      delivery.status === 'failed' && delivery.finishedAtMs !== null && !delivery.erased
        ? instant(replayableUntilMs(delivery.finishedAtMs, retentionMs))
        : null,
    erased: delivery.erased,
  };
}

/**
 * Serializes a delivery with its attempts and what came back from them, and with the replays of its event to its
 * address.
 */
export function serializeDeliveryWithAttempts(
  delivery: StoredDelivery,
  responses: ReadonlyMap<number, CameBack>,
  replays: readonly { id: string }[],
  retentionMs: number,
): api.DeliveryWithAttempts {
  return {
    ...serializeDelivery(delivery, retentionMs),
    attempts: delivery.attempts.map((attempt) => ({
      number: attempt.number,
      started_at: instant(attempt.startedAtMs),
      duration_ms: attempt.durationMs,
      outcome: attempt.error === null ? 'succeeded' : 'failed',
      status_code: attempt.statusCode,
      error: attempt.error,
      ...serializeCameBack(responses.get(attempt.number)),
    })),
    replays: replays.map(({ id }) => id),
  };
}

/** Serializes what came back from an attempt or a validation; both are null if it was not kept. */
function serializeCameBack(
  { response, connection }: CameBack = { response: null, connection: null },
): Pick<api.DeliveryWithAttempts['attempts'][number], 'response' | 'connection'> {
  const certificate = connection?.certificate;
  return {
    response: response && { headers: response.headers, body: response.body, body_truncated: response.isBodyTruncated },
    connection: connection && {
      ip: connection.ip,
      reused: connection.isReused,
      dns_ms: connection.dnsMs,
      connect_ms: connection.connectMs,
      tls_ms: connection.tlsMs,
      first_byte_ms: connection.firstByteMs,
      error_code: connection.errorCode,
      certificate: certificate
        ? { subject: certificate.subject, issuer: certificate.issuer, valid_to: instant(certificate.validToMs) }
        : null,
    },
  };
}

/** Serializes an event as it is delivered, with the time of its acceptance and its deliveries. */
export function serializeEvent(
  { event, acceptedAtMs, erasedAtMs, trace }: StoredEvent,
  deliveries: readonly StoredDelivery[],
  alsoIn: Environment[],
  retentionMs: number,
): api.PublishedEvent {
  return {
    id: event.id,
    type: event.type,
    created_at: event.createdAt,
    environment: event.environment,
    data: dataOf(event),
    accepted_at: instant(acceptedAtMs),
    erased_at: instant(erasedAtMs ?? null),
    also_in: alsoIn,
    trace_id: trace?.traceId ?? null,
    deliveries: deliveries.map((delivery) => serializeDelivery(delivery, retentionMs)),
  };
}

/** Throws `UnreadableRecord` in place of the error for the body of a call, whose cause quotes the text. */
function dataOf({ id, dataJson }: StoredEvent['event']): Record<string, unknown> {
  try {
    return parseJson(dataJson) as Record<string, unknown>;
  } catch {
    throw new UnreadableRecord('event', id, 'its data are no JSON');
  }
}

export function serializeReplay(replay: Replay): api.Replay {
  return {
    id: replay.id,
    subscription_id: replay.subscriptionId,
    ...serializeReplayScope(replay),
    batch_id: replay.batchId,
    status: replay.status,
    total: replay.total,
    replayed: replay.replayed,
    skipped: replay.skipped,
    outcome: replay.outcome,
    operator: replay.operator,
    created_at: instant(replay.createdAtMs),
    finished_at: instant(replay.finishedAtMs),
  };
}

/** Serializes what a bulk replay, or each of a batch, covers. */
export function serializeReplayScope({
  fromMs,
  toMs,
  filter,
  canary,
}: Pick<Replay, 'fromMs' | 'toMs' | 'filter' | 'canary'>) {
  return {
    from: fromMs === 0 ? null : instant(fromMs),
    to: instant(toMs),
    filter: {
      event_type: filter.eventType,
      error: filter.error,
      failed_from: instant(filter.failedFromMs),
      failed_to: instant(filter.failedToMs),
    },
    canary,
  };
}

export function serializeErasure({ secretBox }: Pick<ConsoleContext, 'secretBox'>, erasure: Erasure): api.Erasure {
  const { id, sealedValue, counts } = erasure;
  return {
    id,
    field: erasure.field,
    value: sealedValue === undefined ? null : openOrNull(secretBox, sealedValue, id),
    value_hmac: erasure.valueHmac,
    environment: erasure.environment ?? null,
    status: erasure.status,
    unsent: erasure.unsent,
    found: { events: counts.events, deliveries: counts.deliveries, unsent: counts.unsent },
    erased: {
      events: counts.erasedEvents,
      deliveries: counts.erasedDeliveries,
      ended: counts.endedDeliveries,
      responses: counts.erasedResponses,
    },
    ...(erasure.unreadable.events > 0 && { unreadable: erasure.unreadable }),
    operator: erasure.operator,
    confirmed_by: erasure.confirmedBy,
    created_at: instant(erasure.createdAtMs),
    confirmed_at: instant(erasure.confirmedAtMs),
    finished_at: instant(erasure.finishedAtMs),
  };
}

/** The list of erasures must work without the key of one of them. The worker reports the lost key. */
function openOrNull(secretBox: SecretBox, sealed: string, owner: string): string | null {
  try {
    return secretBox.open(sealed, owner);
  } catch (error) {
    if (error instanceof SealBroken) return null;
    throw error;
  }
}

export function serializeAudit(entry: AuditRecord): api.AuditEntry {
  return {
    id: entry.id,
    at: instant(entry.atMs),
    operator: entry.operator,
    action: entry.action,
    subscription_id: entry.subscriptionId ?? null,
    delivery_id: entry.deliveryId ?? null,
    replay_id: entry.replayId ?? null,
    summary: summarizeAudit(entry, entry.atMs),
    detail: entry.detail ?? {},
  };
}

/** Serializes a page of a list, item by item, and names what it leaves out. */
export async function serializePage<T, P>(
  context: Pick<ConsoleContext, 'logUnreadable'>,
  page: Page<T>,
  serialize: (item: T) => P | Promise<P>,
) {
  const data = await Promise.all(page.items.map(serialize));
  return { data, next_cursor: page.nextCursor, ...nameUnreadable(context, page.unreadable) };
}

/** The ids of records that a response leaves out because they can't be read. Logs why. */
export function nameUnreadable(
  { logUnreadable }: Pick<ConsoleContext, 'logUnreadable'>,
  unreadable: readonly UnreadableRecord[],
): { unreadable?: string[] } {
  if (unreadable.length === 0) return {};
  logUnreadable(unreadable);
  return { unreadable: unreadable.map(({ id }) => id) };
}
