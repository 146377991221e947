/**
 * The state machines of a delivery and of an address (specification 3, interface 6), written a second time from the
 * specification to judge the production code.
 */
import {
  type AttemptError,
  DAY_MS,
  type DeliveryStatus,
  type FailureReason,
  HOUR_MS,
  MINUTE_MS,
  type StatusReason,
} from '@posthorn/core';

/** Specification 8, repeated here to detect mistakes in the constants of the code. */
export const RETRY_DELAYS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 12 * HOUR_MS];
const RETENTION_MS = 30 * DAY_MS;
const RETENTION_SUCCEEDED_MS = 7 * DAY_MS;
/** Fewer than the specification's 20, so that a short story can reach it. */
export const PAUSE_AFTER = 3;
/** A retry that has been due for longer is overdue; this many of an address are released per second. */
const OVERDUE_AFTER_MS = 60_000;
const OVERDUE_BEHIND_OTHERS_MS = 1_000;
export const OVERDUE_PER_SECOND = 50;

export interface Address {
  status: 'active' | 'paused' | 'awaiting_validation' | 'refused' | 'deleted';
  /** Resumed, and nothing but its trial is sent yet: the one delivery that was chosen, or none yet. */
  resuming: boolean;
  trial: string | null;
  reason: StatusReason | null;
  failures: number;
}

export interface Delivery {
  eventId: string;
  isTest: boolean;
  address: string;
  status: DeliveryStatus;
  attempts: number;
  dueAtMs: number | null;
  createdAtMs: number;
  endedAtMs: number | null;
  reason: FailureReason | null;
  /** By an erasure: it is not replayed any more. */
  erased: boolean;
}

/** How long a delivery or a later replay of it needs its event, at least. */
export function keptUntilMs({ status, createdAtMs, endedAtMs }: Delivery): number {
  if (status === 'succeeded') return createdAtMs + RETENTION_SUCCEEDED_MS;
  return (status === 'failed' ? (endedAtMs ?? createdAtMs) : createdAtMs) + RETENTION_MS;
}

export const isOver = ({ status }: Delivery) => status === 'succeeded' || status === 'failed';

/** Whether every delivery may be sent to it. */
const isOpen = ({ status, resuming }: Address) => status === 'active' && !resuming;

/** Whether a delivery may be sent to an address: to one that is resuming, only its trial and test deliveries. */
function mayPass(id: string | undefined, isTest: boolean, address: Address): boolean {
  return isOpen(address) || (address.resuming && (isTest || (id !== undefined && address.trial === id)));
}

/** Makes a new delivery; none for a deleted address. */
export function made(
  { eventId, isTest, address: to }: Pick<Delivery, 'eventId' | 'isTest' | 'address'>,
  address: Address,
  nowMs: number,
): Delivery | undefined {
  if (address.status === 'deleted') return undefined;
  return {
    eventId,
    isTest,
    address: to,
    status: mayPass(undefined, isTest, address) ? 'pending' : 'held',
    attempts: 0,
    dueAtMs: null,
    createdAtMs: nowMs,
    endedAtMs: null,
    reason: null,
    erased: false,
  };
}

/** Whether a delivery waits for an attempt. */
function waits(delivery: Delivery | undefined): boolean {
  return delivery?.status === 'pending' || delivery?.status === 'waiting_for_retry';
}

/** Whether an attempt may begin now. */
export function mayBegin(id: string, delivery: Delivery, address: Address, nowMs: number): boolean {
  return waits(delivery) && mayPass(id, delivery.isTest, address) && (delivery.dueAtMs ?? 0) <= nowMs;
}

/** Ends an attempt. A repeated attempt, or one after the end of its delivery, changes nothing. */
export function attempted(
  id: string,
  delivery: Delivery,
  address: Address,
  attempt: { number: number; error: AttemptError | null; endedAtMs: number },
): { answer: 'recorded' | 'repeated' | 'over'; delivery: Delivery; address: Address } {
  if (isOver(delivery)) return { answer: 'over', delivery, address };
  if (attempt.number !== delivery.attempts + 1) return { answer: 'repeated', delivery, address };
  const attempts = attempt.number;
  const { error, endedAtMs } = attempt;
  const isTrial = address.resuming && address.trial === id;
  const over = { ...delivery, attempts, dueAtMs: null, endedAtMs };
  if (error === null) {
    const reset = address.status === 'deleted' ? address : isTrial ? open(address) : { ...address, failures: 0 };
    return { answer: 'recorded', delivery: { ...over, status: 'succeeded' }, address: reset };
  }
  const delayMs = RETRY_DELAYS_MS[attempts - 1];
  if (delayMs !== undefined) {
    const waiting = { ...delivery, attempts, status: 'waiting_for_retry' as const, dueAtMs: endedAtMs + delayMs };
    return { answer: 'recorded', delivery: waiting, address: isTrial ? shut(address) : address };
  }
  const failed = { ...over, status: 'failed' as const, reason: error };
  return { answer: 'recorded', delivery: failed, address: isTrial ? shut(address) : deliveryFailed(address) };
}

/** A failed delivery counts only against an address that everything is sent to. */
function deliveryFailed(address: Address): Address {
  if (!isOpen(address)) return address;
  // One that was paused, then refused and validated again, keeps its failures.
  const failures = Math.min(address.failures + 1, PAUSE_AFTER);
  return failures >= PAUSE_AFTER
    ? { ...address, status: 'paused', reason: 'consecutive_failures', failures }
    : { ...address, failures };
}

/** A trial succeeded, or nothing waits that could be one. */
export const open = (address: Address): Address => ({
  ...address,
  status: 'active',
  resuming: false,
  reason: null,
  failures: 0,
});
/** A trial failed: paused as before. */
const shut = (address: Address): Address => ({ ...address, status: 'paused', resuming: false });

/** Whether a trial is still needed: there is none, or it is held again, over, or waits for a retry. */
export function needsTrial(address: Address, trial: Delivery | undefined, nowMs: number): boolean {
  return address.resuming && !(waits(trial) && (trial?.dueAtMs ?? 0) <= nowMs + 60_000);
}

/** Holds a delivery, if its address exists and is not active. */
export function held(id: string, delivery: Delivery, address: Address): Delivery | undefined {
  if (isOver(delivery) || mayPass(id, delivery.isTest, address) || address.status === 'deleted') return undefined;
  return { ...delivery, status: 'held', dueAtMs: null };
}

/** Releases a delivery, with the attempts it had. */
export function released(delivery: Delivery): Delivery {
  if (delivery.status !== 'held') return delivery;
  return { ...delivery, status: delivery.attempts === 0 ? 'pending' : 'waiting_for_retry' };
}

/** Whether an attempt is overdue; a first attempt only if its delivery was created before the end of an outage. */
export function isOverdue({ dueAtMs, createdAtMs }: Delivery, nowMs: number, outageEndMs: number): boolean {
  return (dueAtMs ?? createdAtMs) < outageEndMs || (dueAtMs !== null && nowMs - dueAtMs > OVERDUE_AFTER_MS);
}

/** Whether a retry is overdue while others of its address are. */
export function isOverdueBehindOthers({ dueAtMs }: Delivery, nowMs: number): boolean {
  return dueAtMs !== null && nowMs - dueAtMs > OVERDUE_BEHIND_OTHERS_MS;
}

/** Ends a delivery without an attempt. */
export function ended(
  delivery: Delivery,
  reason: 'expired' | 'subscription_deleted' | 'cancelled' | 'erased',
  nowMs: number,
): Delivery {
  return { ...delivery, status: 'failed', reason, dueAtMs: null, endedAtMs: nowMs };
}

/** Returns why a delivery can't be replayed; undefined if it can. */
export function replayRefusal(delivery: Delivery, address: Address, nowMs: number) {
  if (delivery.status !== 'failed') return 'not_failed';
  if (nowMs > (delivery.endedAtMs ?? 0) + RETENTION_MS) return 'too_late';
  if (delivery.erased) return 'erased';
  return address.status === 'active' ? undefined : 'not_active';
}

/** Returns why the next attempt of a delivery can't be made at once; undefined if it can. */
export function tryNowRefusal(id: string, delivery: Delivery, address: Address, nowMs: number) {
  if (delivery.status !== 'waiting_for_retry') return 'not_waiting';
  if (!mayPass(id, delivery.isTest, address)) return 'not_active';
  return (delivery.dueAtMs ?? 0) > nowMs ? undefined : 'already_due';
}

const isInUse = ({ status }: Address) => status === 'active' || status === 'paused';

/** The effect of operators and validations on an address that is not deleted; undefined if the operation is refused. */
export const operations = {
  paused: (now: Address): Address | undefined => {
    if (now.status === 'active') return { ...now, status: 'paused', resuming: false, reason: 'operator' };
    return now.status === 'paused' ? now : undefined;
  },
  resumed: (now: Address): Address | undefined =>
    now.resuming
      ? now
      : now.status === 'paused'
        ? { ...now, status: 'active', resuming: true, trial: null }
        : isInUse(now)
          ? { ...now, reason: null, failures: 0 }
          : undefined,
  url_changed: (): Address => ({
    status: 'awaiting_validation',
    resuming: false,
    trial: null,
    reason: null,
    failures: 0,
  }),
  acceptable: (now: Address): Address =>
    now.status === 'paused' || now.resuming ? now : { ...now, status: 'active', reason: null },
  refused: (now: Address): Address => ({ ...now, status: 'refused', resuming: false, reason: 'redirect' }),
  unreachable: (now: Address): Address =>
    now.status === 'awaiting_validation' ? { ...now, reason: 'unreachable' } : now,
} as const;
export type Operation = keyof typeof operations;
