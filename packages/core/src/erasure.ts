/**
 * The erasure: removes the payloads of an event, a session, a reference or a user from everything that Posthorn stores.
 */
import { DAY_MS, HOUR_MS } from './basics/time.ts';
import type { Environment } from './event.ts';
import { SEARCH_FIELDS } from './search-terms.ts';

/** What the value of an erasure is. All but the first are compared with the payload, as a search does. */
export const ERASURE_FIELDS = ['event_id', ...SEARCH_FIELDS] as const;
export type ErasureField = (typeof ERASURE_FIELDS)[number];

/**
 * `counting`: events are looked for; `counted`: it waits for a confirmation; `running`: confirmed; `waiting`:
 * confirmed, everything is found, and some deliveries are to be sent first; `cancelled`: it was never confirmed, or an
 * operator cancelled it.
 */
export const ERASURE_STATUSES = ['counting', 'counted', 'running', 'waiting', 'done', 'cancelled'] as const;
export type ErasureStatus = (typeof ERASURE_STATUSES)[number];

/** What becomes of deliveries that have not ended: they end at once, or they are delivered (or fail) first. */
export const UNSENT_CHOICES = ['end', 'deliver'] as const;
export type UnsentChoice = (typeof UNSENT_CHOICES)[number];

/** An erasure that nobody confirms in this time after its count is cancelled. */
const CONFIRM_WITHIN_MS = HOUR_MS;
/** One that can't be counted in this time is cancelled too, for example because no key opens its value. */
const COUNT_WITHIN_MS = DAY_MS;

/**
 * The last pass begins this long after the confirmation. What ingest was storing at that time is stored by then: a body
 * arrives within 30 s, and a command to Redis fails after 5 s.
 */
const LAST_PASS_AFTER_MS = 60_000;

/**
 * A running erasure ends this long after its cancellation: an event that was being erased is done and counted by then.
 */
const CANCELLED_AFTER_MS = 10_000;

/** What was found, and what was done. All are counts. */
export interface ErasureCounts {
  /** Events with the value; their deliveries, replays included; those of the deliveries that had not ended. */
  events: number;
  deliveries: number;
  unsent: number;
  /**
   * Events whose payload was erased, their deliveries, those that the erasure ended, and the deliveries whose responses
   * were deleted.
   */
  erasedEvents: number;
  erasedDeliveries: number;
  endedDeliveries: number;
  erasedResponses: number;
}

export interface Erasure {
  id: string;
  field: ErasureField;
  /** Undefined: both. */
  environment: Environment | undefined;
  status: ErasureStatus;
  unsent: UnsentChoice;
  /** Keyed hash of the field and the value. */
  valueHmac: string;
  /** The value, sealed; undefined once nothing has to be looked for any more. */
  sealedValue: string | undefined;
  counts: ErasureCounts;
  /** While it is open: how many stored events can't be read, of which each may be one to erase; the ids of some. */
  unreadable: { events: number; ids: string[] };
  /** Who requested it, and who confirmed it. */
  operator: string;
  confirmedBy: string | null;
  createdAtMs: number;
  /** When its count was complete; null also if an earlier release has counted it. */
  countedAtMs: number | null;
  confirmedAtMs: number | null;
  /** When somebody cancelled it while it was running, and who: from then on nothing more is erased. */
  cancelledAtMs: number | null;
  cancelledBy: string | null;
  finishedAtMs: number | null;
}

/**
 * The passes over all events that an erasure needs at this time: one to count, and a last one after its confirmation.
 */
export function passesNeeded(
  { field, confirmedAtMs }: Pick<Erasure, 'field' | 'confirmedAtMs'>,
  nowMs: number,
): number {
  // An id that somebody knows has been accepted.
  if (field === 'event_id') return 1;
  return confirmedAtMs !== null && nowMs >= confirmedAtMs + LAST_PASS_AFTER_MS ? 2 : 1;
}

/**
 * What an erasure becomes next, from the passes that are done and the events that are left to erase, those that can't
 * be read included; undefined: it stays as it is.
 */
export function nextErasureStatus(
  erasure: Erasure,
  passes: number,
  left: number,
  nowMs: number,
): ErasureStatus | undefined {
  const { status, field, createdAtMs, countedAtMs, cancelledAtMs, unsent, unreadable } = erasure;
  switch (status) {
    case 'counting':
      if (passes >= 1) return 'counted';
      return nowMs - createdAtMs > COUNT_WITHIN_MS ? 'cancelled' : undefined;
    case 'counted':
      return nowMs - (countedAtMs ?? createdAtMs) > CONFIRM_WITHIN_MS ? 'cancelled' : undefined;
    case 'running':
      if (cancelledAtMs !== null) return nowMs - cancelledAtMs >= CANCELLED_AFTER_MS ? 'cancelled' : undefined;
      if (passes < (field === 'event_id' ? 1 : 2)) return undefined;
      if (left === 0) return 'done';
      // The value is needed until it is known whether they have it.
      return unsent === 'deliver' && unreadable.events === 0 ? 'waiting' : undefined;
    case 'waiting':
      return left === 0 ? 'done' : undefined;
    case 'done':
    case 'cancelled':
      return undefined;
    default:
      return status satisfies never;
  }
}

/**
 * Whether an operator may still choose that the unsent deliveries of a confirmed erasure end: it waits for them, or for
 * an event that can't be read. Until then the first confirmation counts, should two operators choose differently.
 */
export function mayEndUnsent({
  status,
  unsent,
  unreadable,
  cancelledAtMs,
}: Pick<Erasure, 'status' | 'unsent' | 'unreadable' | 'cancelledAtMs'>): boolean {
  const waits = status === 'waiting' || (status === 'running' && unreadable.events > 0 && cancelledAtMs === null);
  return waits && unsent === 'deliver';
}
