/** The bulk replay: replays every failed delivery of an address in a time range once (interface 4). */

/** `failed`: its subscription was deleted before it ended. */
export const REPLAY_STATUSES = ['running', 'done', 'failed'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

export interface Replay {
  id: string;
  subscriptionId: string;
  /** Covers the failed deliveries that were made in this time, both ends included. */
  fromMs: number;
  toMs: number;
  status: ReplayStatus;
  /** Failed deliveries found when it began; at the end exactly `replayed + skipped`. */
  total: number;
  replayed: number;
  /** Not replayed: a replay is unfinished or has succeeded, or it is too late to replay. */
  skipped: number;
  createdAtMs: number;
  finishedAtMs: number | null;
  operator: string;
}

/** Until when a failed delivery may be replayed, to the millisecond and included (specification 1: 30 days). */
export function replayableUntilMs(failedAtMs: number, retentionMs: number): number {
  return failedAtMs + retentionMs;
}
