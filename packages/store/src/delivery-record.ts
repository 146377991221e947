/** Reads and writes a delivery's record: one hash, with short field names since there are millions. */
import {
  ATTEMPT_ERRORS,
  type Attempt,
  DEFAULT_MAX_ATTEMPTS,
  DELIVERY_STATUSES,
  type Delivery,
  type EventRef,
  eventIdOf,
  FAILURE_REASONS,
  isFinished,
} from '@posthorn/core';
import { GRACE_MS } from './constants.ts';
import { decodeKind } from './events.ts';
import { deliveryKey, prefixOfId } from './keys.ts';
import { readRules, type Store } from './store.ts';

/** A stored delivery, with the reference of its event and the generation of its job. */
export type StoredDelivery = Delivery & { event: EventRef; generation: number };

/** How long from now on the event of an unfinished delivery is kept, at least; how long a failed one is, with its event. */
export function keptWhileUnfinishedMs(store: Store): number {
  return store.retentionMs + Math.min(store.retentionMs, GRACE_MS);
}

/** Deliveries by id, in the order of the ids; undefined for an id that has no delivery (any more). */
export async function loadDeliveries(store: Store, ids: readonly string[]): Promise<(StoredDelivery | undefined)[]> {
  if (ids.length === 0) return [];
  const [{ maxAttempts }, ...deliveries] = await Promise.all([
    readRules(store),
    ...ids.map(async (id) => ({
      id,
      record: await store.redis.hgetall(deliveryKey(prefixOfId(store, id), id)),
    })),
  ]);
  return deliveries.map(({ id, record }) => decodeDelivery(id, record, maxAttempts));
}

/**
 * The fields: e event reference, s subscription, k type and environment, st status, n attempts recorded, g generation of its job, c created,
 * x next attempt, f finished (left out where the end of the last attempt says it), r failure reason, o replay of, m attempts allowed
 * (left out where it is the default), a1…aN attempts.
 */
function decodeDelivery(id: string, record: Record<string, string>, maxAttempts: number): StoredDelivery | undefined {
  const status = DELIVERY_STATUSES[Number(record.st)];
  if (status === undefined || record.e === undefined || record.s === undefined) return undefined;
  const createdAtMs = Number(record.c);
  const attemptCount = Number(record.n);
  const { type, environment } = decodeKind(Number(record.k));
  const attempts = Array.from({ length: attemptCount }, (_, i) =>
    decodeAttempt(i + 1, record[`a${i + 1}`] ?? '', createdAtMs),
  );
  const last = attempts.at(-1);
  const ended = isFinished(status);
  const lastAttemptEnd = last === undefined ? null : last.startedAtMs + last.durationMs;
  return {
    id,
    event: record.e as EventRef,
    eventId: eventIdOf(record.e as EventRef),
    eventType: type,
    environment,
    subscriptionId: record.s,
    status,
    attemptCount,
    maxAttempts: Number(record.m ?? (ended ? DEFAULT_MAX_ATTEMPTS : maxAttempts)),
    nextAttemptAtMs: record.x === undefined ? null : Number(record.x),
    replayOf: record.o ?? null,
    failureReason: FAILURE_REASONS.find((reason) => reason === record.r) ?? null,
    createdAtMs,
    finishedAtMs: record.f !== undefined ? Number(record.f) : ended ? lastAttemptEnd : null,
    attempts,
    generation: Number(record.g ?? 0),
  };
}

/** Milliseconds after creation, duration (both in prefix 36), status code, and the number of the error: a few bytes an attempt. */
export function encodeAttempt(attempt: Attempt, createdAtMs: number): string {
  const parts = [
    (attempt.startedAtMs - createdAtMs).toString(36),
    attempt.durationMs.toString(36),
    attempt.statusCode ?? '',
    ...(attempt.error === null ? [] : [ATTEMPT_ERRORS.indexOf(attempt.error)]),
  ];
  return parts.join(',');
}

function decodeAttempt(number: number, text: string, createdAtMs: number): Attempt {
  const [offset = '0', duration = '0', statusCode, error] = text.split(',');
  return {
    number,
    startedAtMs: createdAtMs + Number.parseInt(offset, 36),
    durationMs: Number.parseInt(duration, 36),
    statusCode: statusCode ? Number(statusCode) : null,
    error: error ? (ATTEMPT_ERRORS[Number(error)] ?? null) : null,
  };
}
