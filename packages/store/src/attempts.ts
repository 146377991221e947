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
import { ADDRESS_FIELDS, DELETED, DELIVERY_FIELDS, MISSED_AFTER_MS } from './constants.ts';
import { encodeAttempt, keptWhileUnfinishedMs } from './delivery-record.ts';
import { decodeKind, keepEvent } from './events.ts';
import type { EndedJob } from './jobs.ts';
import { deliveryKey, prefixOfId, RESUMING, subscriptionKey } from './keys.ts';
import { encodeCameBack, RESPONSES_AFTER_SUCCESS_MS } from './responses.ts';
import { type FoundJob, runScript, type ScriptResult } from './scripts.ts';
import type { Store } from './store.ts';
import { type EndedSuccess, recordTogether } from './successes.ts';

/** The life of a delivery that succeeds this soon is counted from its creation. */
const PROMPT_MS = 60_000;

type AttemptJob = Pick<DeliveryJob, 'deliveryId' | 'generation' | 'subscriptionId'>;

/** What a worker has to do for a job. */
export type Begun =
  | {
      kind: 'attempt';
      attemptNumber: number;
      event: EventRef;
      eventType: EventType;
      environment: Environment;
      subscriptionId: string;
      createdAtMs: number;
      /** Null for a first attempt that was never postponed. */
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
 * Decides what a worker has to do for a job. Holds the delivery if its address is not active (unless it is the
 * trial of a resume, or a test delivery), and moves it to the overdue lane if its attempt is overdue.
 * Whatever was due before `dueBeforeMs` is overdue, also a first attempt. `found`: what was read when the job was taken, if that was just now.
 */
export async function beginAttempt(
  store: Store,
  job: AttemptJob,
  nowMs: number,
  dueBeforeMs = 0,
  found?: FoundJob,
): Promise<Begun> {
  const { deliveryId: id, generation, subscriptionId } = job;
  const prefix = prefixOfId(store, id);
  let [delivery, address] = [found?.delivery, found?.address];
  for (;;) {
    if (!delivery || !address) {
      [delivery, address] = await Promise.all([
        store.redis.hmget(deliveryKey(prefix, id), ...DELIVERY_FIELDS),
        store.redis.hmget(subscriptionKey(prefix, subscriptionId), ...ADDRESS_FIELDS),
      ]);
    }
    const [st, newestGeneration, dueAt, eventText, created, attempts, kind, replayOf] = delivery;
    const event = (eventText ?? jointRefOf(id)) as EventRef;
    const status = st == null ? undefined : DELIVERY_STATUSES[Number(st)];
    if (status === undefined || isFinished(status)) return { kind: 'over' };
    if (Number(newestGeneration ?? 0) !== generation) return { kind: 'superseded' };
    if (dueAt != null && Number(dueAt) > nowMs) return { kind: 'snoozed', dueAtMs: Number(dueAt) };
    const [addressStatus, url, secret, previousSecret, previousUntil, trial] = address;
    if (addressStatus == null || addressStatus === DELETED) return { kind: 'subscription_deleted' };
    const { type, environment } = decodeKind(Number(kind));
    if (mayPass(addressStatus, trial === id, type)) {
      if (Number(dueAt ?? created) < Math.max(dueBeforeMs, dueAt == null ? 0 : nowMs - MISSED_AFTER_MS)) {
        const lane = await parkDelivery(store, job, nowMs, dueBeforeMs, true);
        if (lane === 'overdue' || lane === 'superseded') return { kind: lane };
      }
      return {
        kind: 'attempt',
        attemptNumber: Number(attempts) + 1,
        event,
        eventType: type,
        environment,
        subscriptionId,
        createdAtMs: Number(created),
        dueAtMs: dueAt == null ? null : Number(dueAt),
        isReplay: replayOf != null,
        url: url ?? '',
        sealedSecret: secret ?? '',
        previousSealedSecret: previousSecret || null,
        previousSecretUntilMs: Number(previousUntil),
      };
    }
    // It must not be sent by what was read: the script holds the delivery unless that has changed. Then read again.
    if (await runScript(store, 'hold', prefix, { id, generation, subscriptionId })) {
      await keepEvent(store, event, Number(created) + keptWhileUnfinishedMs(store));
      return { kind: 'held' };
    }
    delivery = undefined;
  }
}

/** Whether a delivery may be sent to an address with this stored status; lib/may-pass.lua asks the same. */
function mayPass(addressStatus: string, isTrial: boolean, type: EventType): boolean {
  if (addressStatus === 'active' || (addressStatus === RESUMING && isTrial)) return true;
  return (addressStatus === 'paused' || addressStatus === RESUMING) && type === TEST_EVENT_TYPE;
}

/**
 * `repeated`: this attempt had been recorded already; `over`: the delivery had ended meanwhile. Nothing was changed then. `paused`:
 * whether this failure paused the address. `parked`: deliveries of this address that wait for a slot.
 */
export type Recorded = Pick<ScriptResult<'recordAttempt'>, 'kind' | 'paused' | 'parked'>;

/** A delivery that was attempted. */
export interface AttemptedDelivery {
  id: string;
  event: EventRef;
  createdAtMs: number;
}

/**
 * Records an attempt with its verdict, and counts the address's consecutive failures, in one step.
 * Extends the event's life first, so that a failed delivery never outlives the event that it would replay.
 * `cameBack` returns what came back, to be kept if the attempt failed. It is called late, because the body may still be arriving.
 */
export async function recordAttempt(
  store: Store,
  delivery: AttemptedDelivery,
  attempt: Attempt,
  verdict: Verdict,
  limits: { pauseAfter: number; maxAttempts: number },
  cameBack?: () => CameBack,
): Promise<ScriptResult<'recordAttempt'>> {
  const endedAtMs = attempt.startedAtMs + attempt.durationMs;
  const { expiresAtMs, responsesUntilMs } = await keepWhatIsNeeded(store, delivery, attempt, verdict);
  return await runScript(store, 'recordAttempt', prefixOfId(store, delivery.id), {
    id: delivery.id,
    number: attempt.number,
    verdict: verdict.kind,
    attempt: encodeAttempt(attempt, delivery.createdAtMs),
    endedAtMs,
    nextAttemptAtMs: verdict.kind === 'retry' ? verdict.nextAttemptAtMs : undefined,
    reason: verdict.kind === 'failed' ? verdict.reason : undefined,
    expiresAtMs,
    pauseAfter: limits.pauseAfter,
    maxAttempts: limits.maxAttempts === DEFAULT_MAX_ATTEMPTS ? undefined : limits.maxAttempts,
    retentionMs: store.retentionMs,
    response: cameBack && responsesUntilMs !== undefined ? encodeCameBack(cameBack()) : undefined,
    responsesUntilMs,
  });
}

const SUCCEEDED: Verdict = { kind: 'succeeded' };

/**
 * Records an attempt that succeeded like `recordAttempt`, ends its job, and takes the next one if there is a token for it, in one step: one script for all
 * successes of one turn of the event loop. `code`: 0, or BullMQ's error code where the job could not be ended.
 */
export async function recordSuccess(
  store: Store,
  delivery: AttemptedDelivery,
  attempt: Attempt,
  limits: { maxAttempts: number },
  cameBack: (() => CameBack) | undefined,
  lock: EndedJob,
): Promise<EndedSuccess> {
  const { expiresAtMs, responsesUntilMs } = await keepWhatIsNeeded(store, delivery, attempt, SUCCEEDED);
  return await recordTogether(store, {
    prefix: prefixOfId(store, delivery.id),
    id: delivery.id,
    number: attempt.number,
    attempt: encodeAttempt(attempt, delivery.createdAtMs),
    endedAtMs: attempt.startedAtMs + attempt.durationMs,
    expiresAtMs,
    maxAttempts: limits.maxAttempts,
    response: cameBack && responsesUntilMs !== undefined ? encodeCameBack(cameBack()) : undefined,
    responsesUntilMs,
    lock,
  });
}

/** Keeps the event for as long as the delivery needs it. Returns how long the delivery, and what came back, are to be kept. */
async function keepWhatIsNeeded(
  store: Store,
  { event, createdAtMs }: AttemptedDelivery,
  { number, startedAtMs, durationMs }: Attempt,
  verdict: Verdict,
): Promise<{ expiresAtMs: number; responsesUntilMs: number | undefined }> {
  const endedAtMs = startedAtMs + durationMs;
  const expiresAtMs = keptUntilMs(store, verdict, endedAtMs, createdAtMs);
  if (verdict.kind === 'succeeded') {
    // Until now its event has been kept for RETENTION after the delivery was made, or longer.
    if (expiresAtMs > createdAtMs + store.retentionMs) await keepEvent(store, event, expiresAtMs);
    // Most deliveries succeed at once and have nothing to compare with.
    const isFirst = number === 1;
    return {
      expiresAtMs,
      responsesUntilMs: isFirst ? undefined : Math.min(expiresAtMs, endedAtMs + RESPONSES_AFTER_SUCCESS_MS),
    };
  }
  const responsesUntilMs =
    verdict.kind === 'retry' ? verdict.nextAttemptAtMs + keptWhileUnfinishedMs(store) : expiresAtMs;
  await keepEvent(store, event, responsesUntilMs);
  return { expiresAtMs, responsesUntilMs };
}

/** The end of the delivery's life if it ends with this verdict. */
function keptUntilMs(store: Store, { kind }: Verdict, endedAtMs: number, createdAtMs: number): number {
  if (kind !== 'succeeded') return endedAtMs + keptWhileUnfinishedMs(store);
  const isPrompt = endedAtMs - createdAtMs < PROMPT_MS;
  return (isPrompt ? createdAtMs : endedAtMs) + store.succeededRetentionMs;
}

/**
 * Parks a delivery that has no free slot in this worker; an overdue one goes into the overdue lane. With `onlyOverdue`, a delivery that is
 * not overdue is left as it is. Returns the lane, `not_overdue` if the delivery was left, or `superseded` if it has another job or ended.
 */
export async function parkDelivery(
  store: Store,
  { deliveryId: id, generation, subscriptionId }: AttemptJob,
  nowMs: number,
  dueBeforeMs: number,
  onlyOverdue = false,
): Promise<ScriptResult<'park'>> {
  const values = {
    id,
    generation,
    subscriptionId,
    nowMs,
    dueBeforeMs,
    onlyOverdue,
  };
  return await runScript(store, 'park', prefixOfId(store, id), values);
}
