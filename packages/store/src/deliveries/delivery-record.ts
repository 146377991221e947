/** Reads and writes a delivery's record: one hash, with short field names since there are millions. */
import {
  ATTEMPT_ERRORS,
  type Attempt,
  DEFAULT_MAX_ATTEMPTS,
  DELIVERY_STATUSES,
  type Delivery,
  deliveryId,
  type EventRef,
  eventIdOf,
  FAILURE_REASONS,
  type FailureReason,
  isFinished,
  jointRefOf,
} from '@posthorn/core';
import { ERASED_WITH_RESPONSES, GRACE_MS } from '../constants.ts';
import { checkTimes, decodeNamed, readNamed } from '../decode-named.ts';
import { decodeKind } from '../events/event-record.ts';
import { deliveryKey, prefixOfId } from '../keys.ts';
import { readRules } from '../rules.ts';
import type { Store } from '../store.ts';

/** A stored delivery, with the reference of its event and the generation of its job. */
export type StoredDelivery = Delivery & {
  event: EventRef;
  generation: number;
  /** An erasure deleted the responses to its attempts. */
  hadResponses: boolean;
};

/** How long a failed delivery and its event are kept, and at least how much longer the event of an unfinished one. */
export function keptWhileUnfinishedMs(store: Store): number {
  return store.retentionMs + Math.min(store.retentionMs, GRACE_MS);
}

/** Deliveries by id, in the order of the ids; undefined for an id that has no delivery (any more). */
export async function loadDeliveries(store: Store, ids: readonly string[]): Promise<(StoredDelivery | undefined)[]> {
  if (ids.length === 0) return [];
  const [{ maxAttempts }, ...records] = await Promise.all([
    readRules(store),
    ...ids.map((id) => readNamed('delivery', id, store.redis.hgetall(deliveryKey(prefixOfId(store, id), id)))),
  ]);
  return ids.map((id, i) => decodeNamed('delivery', id, () => decodeDelivery(id, records[i] ?? {}, maxAttempts)));
}

/** The deliveries with these ids, without those that no longer exist. */
export async function loadExisting(store: Store, ids: readonly string[]): Promise<StoredDelivery[]> {
  return (await loadDeliveries(store, ids)).filter((delivery) => delivery !== undefined);
}

/** The deliveries named by entries of a stream, without those that no longer exist. */
export async function loadEntries(store: Store, entries: readonly [string, string[]][]): Promise<StoredDelivery[]> {
  return await loadExisting(
    store,
    entries.map(([, [, id = '']]) => id),
  );
}

/**
 * The fields of a delivery:
 * - `e` the event's reference (left out of a joint record), `p` the partition of the event, if that is another one
 * - `s` the subscription, `k` type and environment of the event, `o` the delivery that it replays, `b` the bulk replay
 *   that has not counted it
 * - `st` status, `n` attempts recorded, `m` attempts allowed (left out if that is the default), `x` time of the next
 *   attempt, `d` when that retry was due first, if it was overdue and has been released since, and `x` as it
 *   was then: with another `x` it counts for nothing; `w` the call of its last try now
 * - `g` generation of its job: counts from 0, and after it was held from the time of its release
 * - `c` created, `f` finished (left out if the end of the last attempt says it), `r` failure reason
 * - `z` erased: `ERASED` or `ERASED_WITH_RESPONSES` of constants.ts
 * - `a1`…`aN` attempts
 * - of a joint record: `u` the end of the delivery, if its event is kept for longer; `t1`…`tN` the text of the event
 */
function decodeDelivery(id: string, record: Record<string, string>, maxAttempts: number): StoredDelivery | undefined {
  const event = (record.e ?? jointRefOf(id)) as EventRef | undefined;
  if (record.st === undefined || event === undefined || record.s === undefined) return undefined;
  // A joint record is found under any id that ends with its event's reference, and may outlive its delivery, for a
  // replay.
  if (record.e === undefined && (deliveryId(event, record.s) !== id || Number(record.u) <= Date.now()))
    return undefined;
  const status = DELIVERY_STATUSES[Number(record.st)];
  if (status === undefined) throw new Error(`its st is ${record.st}`);
  const createdAtMs = Number(record.c);
  const attemptCount = Number(record.n);
  const { type, environment } = decodeKind(Number(record.k));
  const attempts = Array.from({ length: attemptCount }, (_, i) =>
    decodeAttempt(i + 1, record[`a${i + 1}`] ?? '', createdAtMs),
  );
  for (const attempt of attempts) checkTimes(attempt);
  const last = attempts.at(-1);
  const ended = isFinished(status);
  const lastAttemptEnd = last === undefined ? null : last.startedAtMs + last.durationMs;
  return {
    id,
    event,
    eventId: eventIdOf(event),
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
    erased: record.z !== undefined || record.r === ('erased' satisfies FailureReason),
    generation: Number(record.g ?? 0),
    hadResponses: record.z === ERASED_WITH_RESPONSES,
  };
}

/** The status code of most attempts that succeed. */
const OK = 200;

/**
 * Milliseconds after creation, duration (both in base 36), status code, and the number of the error: a few bytes an
 * attempt. The code of a success is left out if it is 200: the record of most deliveries then fits Redis's smaller size
 * class of 128 bytes. Older records have it.
 */
export function encodeAttempt(attempt: Attempt, createdAtMs: number): string {
  const { startedAtMs, durationMs, statusCode, error } = attempt;
  const times = [(startedAtMs - createdAtMs).toString(36), durationMs.toString(36)];
  if (error !== null) return [...times, statusCode ?? '', ATTEMPT_ERRORS.indexOf(error)].join(',');
  return (statusCode === OK ? times : [...times, statusCode ?? '']).join(',');
}

export function decodeAttempt(number: number, text: string, createdAtMs: number): Attempt {
  const [offset = '0', duration = '0', statusCode = String(OK), error] = text.split(',');
  return {
    number,
    startedAtMs: createdAtMs + Number.parseInt(offset, 36),
    durationMs: Number.parseInt(duration, 36),
    statusCode: statusCode ? Number(statusCode) : null,
    error: error ? (ATTEMPT_ERRORS[Number(error)] ?? null) : null,
  };
}
