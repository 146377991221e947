/** The bulk replay: replays every failed delivery of an address in a time range once (interface 4). */
import type { Delivery, FailureReason } from './delivery.ts';
import type { EventType } from './event.ts';

/**
 * `failed`: its subscription was deleted before it ended. `canary`: its first deliveries decide whether it goes on;
 * `halted`: one of them had a failed attempt, and an operator decides. `cancelled`: an operator stopped it, and what
 * had no attempt yet ends.
 */
export const REPLAY_STATUSES = ['running', 'done', 'failed', 'canary', 'halted', 'cancelled'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

/** The deliveries that a replay with a canary makes before it goes on. */
export const CANARY_DELIVERIES = 5;

/**
 * Which failed deliveries a bulk replay covers; null stands for any value. Times of failure in milliseconds, both ends
 * included.
 */
export interface ReplayFilter {
  eventType: EventType | null;
  error: FailureReason | null;
  failedFromMs: number | null;
  failedToMs: number | null;
}

/** What became of a bulk replay's deliveries. The sum of all is `replayed`. */
export interface ReplayOutcome {
  delivered: number;
  failed: number;
  /** Ended by a cancellation before their first attempt. */
  cancelled: number;
  /** Not ended yet. */
  waiting: number;
  /** Made by an earlier version of Posthorn, which did not count. */
  unknown: number;
}

export interface Replay {
  id: string;
  subscriptionId: string;
  /** Covers the failed deliveries that were made in this time, both ends included. */
  fromMs: number;
  toMs: number;
  filter: ReplayFilter;
  /** The same for the replays of several addresses that were started together. */
  batchId: string | null;
  /** Whether it began with a canary. */
  canary: boolean;
  status: ReplayStatus;
  /** Failed deliveries found when it began; at the end exactly `replayed + skipped`. */
  total: number;
  replayed: number;
  /** Not replayed: a replay is unfinished or has succeeded, or it is too late to replay. */
  skipped: number;
  outcome: ReplayOutcome;
  createdAtMs: number;
  finishedAtMs: number | null;
  operator: string;
}

/** Until when a failed delivery may be replayed, to the millisecond and included (specification 1: 30 days). */
export function replayableUntilMs(failedAtMs: number, retentionMs: number): number {
  return failedAtMs + retentionMs;
}

/** Whether a filter covers a failed delivery. */
export function isCovered(
  filter: ReplayFilter,
  failed: { eventType: EventType; failureReason: FailureReason | null; finishedAtMs: number | null },
): boolean {
  const { eventType, error, failedFromMs, failedToMs } = filter;
  const failedAtMs = failed.finishedAtMs ?? 0;
  return (
    (eventType === null || eventType === failed.eventType) &&
    (error === null || error === failed.failureReason) &&
    (failedFromMs === null || failedAtMs >= failedFromMs) &&
    (failedToMs === null || failedAtMs <= failedToMs)
  );
}

/**
 * The verdict on a canary: `failed` after the first failed attempt, `passed` if all were delivered, else undefined.
 * Deliveries that ended without an attempt, because they were erased for example, do not count, unless all did.
 */
export function judgeCanary(
  deliveries: readonly Pick<Delivery, 'status' | 'attempts'>[],
): 'passed' | 'failed' | undefined {
  if (deliveries.some(({ attempts }) => attempts.some(({ error }) => error !== null))) return 'failed';
  const counted = deliveries.filter(({ status }) => status !== 'failed');
  if (counted.length === 0) return 'failed';
  return counted.every(({ status }) => status === 'succeeded') ? 'passed' : undefined;
}
