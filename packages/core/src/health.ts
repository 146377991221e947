/**
 * The health of an address: whether its attempts fail now, since when and with what. The script add-address-counts
 * keeps it.
 */
import type { AttemptError } from './delivery.ts';

export const HEALTH_STATES = ['unknown', 'healthy', 'failing'] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** Attempts in a row that decide: that many failures begin a failing period, that many successes end it. */
export const HEALTH_RUN = 10;
/** The recent time over which the success rate is taken. The rate counts from `HEALTH_RUN` attempts on. */
export const HEALTH_MINUTES = 15;

/**
 * An address is fast if its attempts take less than this on average, in milliseconds: it does not share the slots of
 * its host.
 */
export const FAST_MS = 100;

/** One kind of failure of an address: how often, since when, and the newest attempt that failed so. */
export interface AddressError {
  /** See `errorLabel`. */
  label: string;
  count: number;
  sinceMs: number;
  deliveryId: string;
  attemptNumber: number;
}

/** What is known of an address from its attempts. Estimates: a worker that dies takes up to 2 s of counts with it. */
export interface AddressHealth {
  /** `unknown`: no attempt yet, or none for as long as deliveries are kept. */
  state: HealthState;
  /** When the failing period began; null if there is none. */
  failingSinceMs: number | null;
  /** Failed attempts since the last successful one. */
  failedInARow: number;
  /** Attempts of the last 15 minutes. */
  recent: { attempts: number; succeeded: number };
  lastSucceededAtMs: number | null;
  /** The most frequent error since the address was last well; null if there was none. */
  error: AddressError | null;
}

export const UNKNOWN_HEALTH: Readonly<AddressHealth> = {
  state: 'unknown',
  failingSinceMs: null,
  failedInARow: 0,
  recent: { attempts: 0, succeeded: 0 },
  lastSucceededAtMs: null,
  error: null,
};

/** Names a failure for people: the status code (`500`), or the error and its code (`timeout`, `dns ENOTFOUND`). */
export function errorLabel(error: AttemptError, statusCode: number | null, code?: string): string {
  if (statusCode !== null) return String(statusCode);
  if (error === 'address_blocked') return code === undefined ? 'address blocked' : code.replaceAll('_', ' ');
  return code === undefined ? error : `${error} ${code}`;
}

/** The attempts of one worker to one address since it last reported them. */
export interface AttemptRun {
  succeeded: number;
  failed: number;
  /** Failures after the last success, and successes after the last failure. */
  failedInARow: number;
  succeededInARow: number;
  /** The first of `failedInARow`. */
  firstFailedAtMs: number | null;
  lastSucceededAtMs: number | null;
  /** By label, in the order of their first failure. */
  errors: Map<string, AddressError>;
}

export function newAttemptRun(): AttemptRun {
  return {
    succeeded: 0,
    failed: 0,
    failedInARow: 0,
    succeededInARow: 0,
    firstFailedAtMs: null,
    lastSucceededAtMs: null,
    errors: new Map(),
  };
}

/** Labels of one report. A label beyond that is counted as an attempt only. */
const MAX_LABELS = 20;

/** Adds an attempt that succeeded at `atMs` to a run. */
export function addSuccess(run: AttemptRun, atMs: number): void {
  run.succeeded += 1;
  run.succeededInARow += 1;
  run.failedInARow = 0;
  run.firstFailedAtMs = null;
  run.lastSucceededAtMs = atMs;
}

/** Adds a failed attempt to a run; `sinceMs` is when it ended. */
export function addFailure(run: AttemptRun, failure: Omit<AddressError, 'count'>): void {
  run.failed += 1;
  run.failedInARow += 1;
  run.succeededInARow = 0;
  run.firstFailedAtMs ??= failure.sinceMs;
  const known = run.errors.get(failure.label);
  if (!known && run.errors.size >= MAX_LABELS) return;
  run.errors.set(failure.label, {
    ...failure,
    count: (known?.count ?? 0) + 1,
    sinceMs: known?.sinceMs ?? failure.sinceMs,
  });
}
