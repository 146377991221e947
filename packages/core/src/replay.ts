/** The bulk replay: every failed delivery of one address in a time, once each (interface 4). */

/** `failed`: its subscription was deleted before it was through. */
export const REPLAY_STATUSES = ['running', 'done', 'failed'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

export interface Replay {
  id: string;
  subscriptionId: string;
  /** The deliveries that were made in this time, both ends included, and failed. */
  fromMs: number;
  toMs: number;
  status: ReplayStatus;
  /** Failed deliveries found when it began; at the end exactly `replayed + skipped`. */
  total: number;
  replayed: number;
  /** Left alone: a replay is on its way or has succeeded, or the time to replay it is over. */
  skipped: number;
  createdAtMs: number;
  finishedAtMs: number | null;
  operator: string;
}

/** Until when a failed delivery may be replayed, to the millisecond and included (specification 1: 30 days). */
export function replayableUntilMs(failedAtMs: number, retentionMs: number): number {
  return failedAtMs + retentionMs;
}
