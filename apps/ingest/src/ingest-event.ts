/** An event's way through ingest: parse → match → store → make the deliveries and their jobs. HTTP is left to routes.ts. */
import { isDeepStrictEqual } from 'node:util';
import {
  AppError,
  type Environment,
  type Event,
  eventBody,
  eventRef,
  newEventId,
  parseJson,
  publishedEventSchema,
  type SubscriptionEnvironment,
  utcInstant,
} from '@posthorn/core';
import { type DispatchContext, makeDeliveries } from '@posthorn/dispatch';
import { fieldErrors } from '@posthorn/http';
import type { Clock } from '@posthorn/runtime';
import { findMatches, storeEvent, TooFewReplicas } from '@posthorn/store';

export interface IngestContext extends DispatchContext {
  clock: Clock;
  maxEventBytes: number;
  /** Resolves once replicas have all that was written; undefined where nobody waits for replicas. */
  onReplicas: (() => Promise<void>) | undefined;
}

/** `accepted` and `duplicate` say how many deliveries the event has; `conflict` means the id belongs to other content in the same environment. */
export type IngestResult =
  | { kind: 'accepted' | 'duplicate'; event: Event; deliveries: number }
  | { kind: 'conflict'; event: Event };

/**
 * Takes in one event as it came from a publisher whose key is for `keyEnvironment` (interface 3). On return the event, its
 * deliveries and their jobs are stored. May be repeated: the same id and content only fill what a first try left out.
 * Throws `AppError` for bad fields, a foreign environment, too large an event or too few replicas, and what Redis answered if it failed.
 */
export async function ingestEvent(
  context: IngestContext,
  input: unknown,
  keyEnvironment: SubscriptionEnvironment,
): Promise<IngestResult> {
  const nowMs = context.clock.now();
  const { event, hadId, hadCreatedAt } = parseEvent(input, nowMs, context.maxEventBytes);
  checkEnvironment(event.environment, keyEnvironment);
  const subscriptionIds = await findMatches(context.store, event);
  const stored = { ref: eventRef(event), event, acceptedAtMs: nowMs, subscriptionIds };
  const answer = await storeEvent(context.store, stored, { withDeliveries: true, isNewId: !hadId });
  const isNew = 'created' in answer;
  if (!isNew && !isSameEvent(answer.kept.event, event, hadCreatedAt)) return { kind: 'conflict', event };
  const deliveries = await (isNew
    ? makeDeliveries(context, stored, answer.created)
    : makeDeliveries(context, answer.kept));
  await untilReplicated(context);
  return { kind: isNew ? 'accepted' : 'duplicate', event, deliveries };
}

async function untilReplicated({ onReplicas }: IngestContext): Promise<void> {
  try {
    await onReplicas?.();
  } catch (cause) {
    if (!(cause instanceof TooFewReplicas)) throw cause;
    const detail =
      'Too few replicas of Redis answer, so the event may still be lost. Publish it again, with the same id.';
    throw new AppError('unavailable', detail, { cause, retryAfterS: 5 });
  }
}

function parseEvent(input: unknown, nowMs: number, maxBytes: number) {
  const parsed = publishedEventSchema.safeParse(input);
  if (!parsed.success) {
    throw new AppError('invalid_fields', 'The event is not valid.', { fields: fieldErrors(parsed.error) });
  }
  const { id, type, created_at, environment } = parsed.data;
  const event: Event = {
    id: id ?? newEventId(nowMs),
    type,
    createdAt: created_at === undefined ? new Date(nowMs).toISOString() : utcInstant(created_at)!,
    environment,
    // What the publisher wrote, not what a schema made of it: unknown fields stay as they came.
    dataJson: JSON.stringify((input as { data: unknown }).data),
  };
  if (Buffer.byteLength(eventBody(event)) > maxBytes) {
    throw new AppError('body_too_large', `The event is larger than ${maxBytes} bytes.`);
  }
  return { event, hadId: id !== undefined, hadCreatedAt: created_at !== undefined };
}

function checkEnvironment(environment: Environment, keyEnvironment: SubscriptionEnvironment): void {
  if (keyEnvironment !== 'both' && keyEnvironment !== environment) {
    throw new AppError('forbidden_environment', `This key publishes to ${keyEnvironment}, not to ${environment}.`);
  }
}

/** Same content, whatever the order of keys; a repeat that left `created_at` out means the one made for it. */
function isSameEvent(kept: Event, event: Event, hadCreatedAt: boolean): boolean {
  return (
    kept.type === event.type &&
    (!hadCreatedAt || kept.createdAt === event.createdAt) &&
    (kept.dataJson === event.dataJson || isDeepStrictEqual(parseJson(kept.dataJson), parseJson(event.dataJson)))
  );
}
