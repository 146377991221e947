/** Begins and records attempts of deliveries. */
import {
  type Attempt,
  type CameBack,
  DEFAULT_MAX_ATTEMPTS,
  DELIVERY_STATUSES,
  type DeliveryJob,
  type Environment,
  type EventRef,
  type EventType,
  isFinished,
  jointRefOf,
  TEST_EVENT_TYPE,
  type Verdict,
} from '@posthorn/core';
import {
  ADDRESS_FIELDS,
  ADDRESS_PLACES,
  DELETED,
  DELIVERY_FIELDS,
  DELIVERY_PLACES,
  OVERDUE_BEHIND_OTHERS_MS,
} from '../constants.ts';
import { UnreadableRecord } from '../decode-named.ts';
import { decodeKind } from '../events/event-record.ts';
import { keepEvent, keepEventSoon } from '../events/events.ts';
import { deliveryKey, prefixOfId, RESUMING, subscriptionKey } from '../keys.ts';
import { unlessUnavailable } from '../redis/storage-errors.ts';
import { type FoundJob, runScript, type ScriptResult } from '../scripts.ts';
import type { Store } from '../store.ts';
import { encodeAttempt, keptWhileUnfinishedMs } from './delivery-record.ts';
import type { JobToEnd } from './jobs.ts';
import { type EndedSuccess, recordTogether } from './record-successes.ts';
import { encodeCameBack, RESPONSES_AFTER_SUCCESS_MS } from './responses.ts';

/** If a delivery succeeds within this time, its expiry is counted from its creation. */
const PROMPT_MS = 60_000;

type AttemptJob = Pick<DeliveryJob, 'deliveryId' | 'generation' | 'subscriptionId'>;

/** What a worker has to do for a job. */
type Begun =
  | {
      kind: 'attempt';
      attemptNumber: number;
      event: EventRef;
      eventType: EventType;
      environment: Environment;
      subscriptionId: string;
      createdAtMs: number;
      /** When a retry was first due: also if it was overdue then. Null for a first attempt that was never postponed. */
      dueAtMs: number | null;
      isReplay: boolean;
      url: string;
      sealedSecret: string;
      previousSealedSecret: string | null;
      previousSecretUntilMs: number;
    }
  /** The delivery has ended, or it has a newer job: there is nothing to do. */
  | { kind: 'over' | 'superseded' }
  /** The job ran before its time, after a crash: it is due at `dueAtMs`. */
  | { kind: 'snoozed'; dueAtMs: number }
  /** The address is not active, or the attempt is overdue: the delivery is in a lane now, and has no job. */
  | { kind: 'held' | 'overdue' }
  | { kind: 'subscription_deleted' };

/**
 * Decides what a worker has to do for a job. Holds the delivery if its address is not active (unless it is the trial of
 * a resume, or a test delivery), and moves it to the overdue lane if its attempt is overdue. Every attempt that was due
 * before `dueBeforeMs` is overdue, also a first one. `found`: what was read when the job was taken, if that was just
 * now: then Redis is rarely needed. Returns a promise only if Redis is needed.
 */
export function beginAttempt(
  store: Store,
  job: AttemptJob,
  nowMs: number,
  dueBeforeMs = 0,
  found?: FoundJob,
): Begun | Promise<Begun> {
  if (!found?.delivery || !found.address) return readAndBegin(store, job, nowMs, dueBeforeMs);
  const next = nextStep(job, found.delivery, found.address, nowMs, dueBeforeMs);
  return next.kind === 'ask' ? askRedis(store, job, next, nowMs, dueBeforeMs) : next;
}

/** An attempt that is due, with all that it needs except its event. */
export type BegunAttempt = Extract<Begun, { kind: 'attempt' }>;

type Fields = readonly (string | null)[];

/**
 * What Redis has to be asked: whether the delivery is overdue (if not, its attempt is made), or whether its address
 * still may not be sent anything.
 */
type AskRedis =
  | { kind: 'ask'; what: 'overdue'; attempt: BegunAttempt }
  | { kind: 'ask'; what: 'hold'; event: EventRef; createdAtMs: number };

async function readAndBegin(store: Store, job: AttemptJob, nowMs: number, dueBeforeMs: number): Promise<Begun> {
  const { deliveryId: id, subscriptionId } = job;
  const prefix = prefixOfId(store, id);
  const [delivery, address] = await Promise.all([
    store.redis.hmget(deliveryKey(prefix, id), ...DELIVERY_FIELDS),
    store.redis.hmget(subscriptionKey(prefix, subscriptionId), ...ADDRESS_FIELDS),
  ]);
  const next = nextStep(job, delivery, address, nowMs, dueBeforeMs);
  return next.kind === 'ask' ? await askRedis(store, job, next, nowMs, dueBeforeMs) : next;
}

async function askRedis(
  store: Store,
  job: AttemptJob,
  next: AskRedis,
  nowMs: number,
  dueBeforeMs: number,
): Promise<Begun> {
  const { deliveryId: id, generation, subscriptionId } = job;
  const prefix = prefixOfId(store, id);
  const delivery = { id, generation, subscriptionId };
  if (next.what === 'overdue') {
    const lane = await runScript(store, 'parkOverdue', prefix, { ...delivery, nowMs, dueBeforeMs });
    return lane === 'not_overdue' ? next.attempt : { kind: lane };
  }
  // By the fields read, it must not be sent. The script holds the delivery unless they have changed; then reads again.
  if (!(await runScript(store, 'hold', prefix, delivery))) return await readAndBegin(store, job, nowMs, dueBeforeMs);
  // Releases up to 0.2.0 have stored the event for `RETENTION` only. And if a failover has lost the success of this
  // delivery after it was reported, the end of the others has shortened the event's life.
  await keepEvent(store, next.event, next.createdAtMs + keptWhileUnfinishedMs(store));
  return { kind: 'held' };
}

/**
 * What follows from the fields of a delivery and of its address. By index: destructuring would allocate more than all
 * the rest.
 */
function nextStep(
  { deliveryId: id, generation, subscriptionId }: AttemptJob,
  delivery: Fields,
  address: Fields,
  nowMs: number,
  dueBeforeMs: number,
): Begun | AskRedis {
  const st = delivery[DELIVERY_PLACES.st];
  const dueAt = delivery[DELIVERY_PLACES.x];
  const event = (delivery[DELIVERY_PLACES.e] ?? jointRefOf(id)) as EventRef;
  const created = delivery[DELIVERY_PLACES.c];
  const status = st == null ? undefined : DELIVERY_STATUSES[Number(st)];
  if (status === undefined || isFinished(status)) return { kind: 'over' };
  if (Number(delivery[DELIVERY_PLACES.g] ?? 0) !== generation) return { kind: 'superseded' };
  if (dueAt != null && Number(dueAt) > nowMs) return { kind: 'snoozed', dueAtMs: Number(dueAt) };
  const addressStatus = address[ADDRESS_PLACES.status];
  if (addressStatus == null || addressStatus === DELETED) return { kind: 'subscription_deleted' };
  const { type, environment } = decodeKind(Number(delivery[DELIVERY_PLACES.k]));
  if (!mayPass(addressStatus, address[ADDRESS_PLACES.trial] === id, type))
    return { kind: 'ask', what: 'hold', event, createdAtMs: Number(created) };
  const attempts = Number.parseInt(delivery[DELIVERY_PLACES.n] ?? '', 10);
  // No attempt that is sent could be recorded, so it would be sent again and again.
  if (!Number.isSafeInteger(attempts) || attempts < 0)
    throw new UnreadableRecord('delivery', id, `its n is ${attempts}`);
  const attempt: BegunAttempt = {
    kind: 'attempt',
    attemptNumber: attempts + 1,
    event,
    eventType: type,
    environment,
    subscriptionId,
    createdAtMs: Number(created),
    dueAtMs: dueAt == null ? null : firstDueAtMs(dueAt, delivery[DELIVERY_PLACES.d]),
    isReplay: delivery[DELIVERY_PLACES.o] != null,
    url: address[ADDRESS_PLACES.url] ?? '',
    sealedSecret: address[ADDRESS_PLACES.secret] ?? '',
    previousSealedSecret: address[ADDRESS_PLACES.previous_secret] || null,
    previousSecretUntilMs: Number(address[ADDRESS_PLACES.previous_until]),
  };
  const isLate = Number(dueAt ?? created) < Math.max(dueBeforeMs, dueAt == null ? 0 : nowMs - OVERDUE_BEHIND_OTHERS_MS);
  return isLate ? { kind: 'ask', what: 'overdue', attempt } : attempt;
}

/** When a retry was first due, by its fields `x` and `d` (delivery-record.ts). */
function firstDueAtMs(dueAt: string, released: string | null | undefined): number {
  const [first, until] = released?.split(':') ?? [];
  return Number(until === dueAt ? first : dueAt);
}

/** Whether a delivery may be sent to an address with this stored status; lib/may-pass.lua asks the same. */
function mayPass(addressStatus: string, isTrial: boolean, type: EventType): boolean {
  return addressStatus === 'active' || (addressStatus === RESUMING && (isTrial || type === TEST_EVENT_TYPE));
}

/**
 * `repeated`: another attempt has this number; `over`: the delivery had ended. Both changed nothing. An attempt that is
 * recorded once more, since the reply was lost, is `recorded` again.
 * `paused`: whether this failure paused the address. `parked`: the number of its deliveries that wait for a slot.
 */
export type Recorded = ScriptResult<'recordFailure'>;

/** A delivery that was attempted. */
interface AttemptedDelivery {
  id: string;
  event: EventRef;
  createdAtMs: number;
}

interface AttemptToRecord {
  delivery: AttemptedDelivery;
  attempt: Attempt;
  /** Returns the response to keep. Called as late as possible, because the body may still be arriving. */
  cameBack?: (() => CameBack) | undefined;
}

interface FailedAttempt extends AttemptToRecord {
  verdict: Exclude<Verdict, { kind: 'succeeded' }>;
  limits: { pauseAfter: number; maxAttempts: number };
}

interface SucceededAttempt extends AttemptToRecord {
  limits: { maxAttempts: number };
  lock: JobToEnd;
}

/**
 * Records an attempt that failed with its verdict, and counts the address's consecutive failures, in one step. Extends
 * the event's life first, so that a failed delivery never outlives the event that it would replay.
 */
export async function recordFailure(
  store: Store,
  { delivery, attempt, verdict, limits, cameBack }: FailedAttempt,
): Promise<Recorded> {
  const { id, event, createdAtMs } = delivery;
  const endedAtMs = attempt.startedAtMs + attempt.durationMs;
  const nextAttemptAtMs = verdict.kind === 'retry' ? verdict.nextAttemptAtMs : undefined;
  const neededUntilMs = (nextAttemptAtMs ?? endedAtMs) + keptWhileUnfinishedMs(store);
  // The event outlives the next attempt anyway, and that attempt extends its life: a hung master must not delay it.
  const isSpare = nextAttemptAtMs !== undefined && nextAttemptAtMs < createdAtMs + store.retentionMs;
  if (isSpare) await keepEventSoon(store, event, neededUntilMs).catch(unlessUnavailable);
  else await keepEvent(store, event, neededUntilMs);
  return await runScript(store, 'recordFailure', prefixOfId(store, id), {
    id,
    number: attempt.number,
    attempt: encodeAttempt(attempt, createdAtMs),
    endedAtMs,
    nextAttemptAtMs,
    reason: verdict.kind === 'failed' ? verdict.reason : undefined,
    neededUntilMs,
    pauseAfter: limits.pauseAfter,
    maxAttempts: limits.maxAttempts === DEFAULT_MAX_ATTEMPTS ? undefined : limits.maxAttempts,
    retentionMs: store.retentionMs,
    response: cameBack && encodeCameBack(cameBack()),
  });
}

/**
 * Records an attempt that succeeded, ends its job, and takes the next job if there is a token for it, in one step. One
 * script does this for all successes of one turn of the event loop. The response is kept only after a failed attempt.
 * `code`: 0, or BullMQ's error code if the job could not be ended.
 */
export function recordSuccess(
  store: Store,
  { delivery, attempt, limits, cameBack, lock }: SucceededAttempt,
): Promise<EndedSuccess> {
  const { event, createdAtMs } = delivery;
  const endedAtMs = attempt.startedAtMs + attempt.durationMs;
  const isPrompt = endedAtMs - createdAtMs < PROMPT_MS;
  const expiresAtMs = (isPrompt ? createdAtMs : endedAtMs) + store.succeededRetentionMs;
  const record = () => {
    // Most deliveries succeed at the first attempt: there is no failed one to compare with.
    const responsesUntilMs =
      attempt.number === 1 ? undefined : Math.min(expiresAtMs, endedAtMs + RESPONSES_AFTER_SUCCESS_MS);
    return recordTogether(store, {
      home: prefixOfId(store, delivery.id),
      id: delivery.id,
      number: attempt.number,
      attempt: encodeAttempt(attempt, createdAtMs),
      endedAtMs,
      expiresAtMs,
      maxAttempts: limits.maxAttempts,
      response: cameBack && responsesUntilMs !== undefined ? encodeCameBack(cameBack()) : undefined,
      responsesUntilMs,
      lock,
    });
  };
  // The event is kept for `RETENTION` after the delivery was made, or longer.
  const isEventKept = expiresAtMs <= createdAtMs + store.retentionMs;
  return isEventKept ? record() : keepEvent(store, event, expiresAtMs).then(record);
}
