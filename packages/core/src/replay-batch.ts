/** A batch: the bulk replays of several addresses that were started together, and their outcome as one. */
import type { Replay, ReplayFilter, ReplayOutcome, ReplayStatus } from './replay.ts';

/** The most addresses of one batch. */
export const MAX_BATCH_ADDRESSES = 50;

export interface ReplayBatch {
  id: string;
  fromMs: number;
  toMs: number;
  filter: ReplayFilter;
  canary: boolean;
  createdAtMs: number;
  operator: string;
  /** The replays, in the order in which the addresses were named. Their ids are known before they are started. */
  members: readonly { subscriptionId: string; replayId: string }[];
  /** An operator's decision to cancel all of them. */
  cancellation: { atMs: number; operator: string } | null;
}

/** What the replays of a batch have come to together. */
interface BatchProgress extends Pick<Replay, 'status' | 'total' | 'replayed' | 'skipped' | 'outcome'> {
  /** When the last of them stopped making deliveries; null if one still does. */
  finishedAtMs: number | null;
}

/** Which status stands for all: what still happens comes first, then what needs a decision. */
const PRECEDENCE: readonly ReplayStatus[] = ['running', 'canary', 'halted', 'done', 'cancelled', 'failed'];

/** Adds up the replays of a batch; `unstarted` of them are not started yet. */
export function batchProgress(replays: readonly Replay[], unstarted: number): BatchProgress {
  const sum = (of: (replay: Replay) => number) => replays.reduce((all, replay) => all + of(replay), 0);
  const outcomeSum = (name: keyof ReplayOutcome) => sum(({ outcome }) => outcome[name]);
  const status = PRECEDENCE.find((each) => replays.some((replay) => replay.status === each)) ?? 'cancelled';
  const finished = replays.flatMap(({ finishedAtMs }) => finishedAtMs ?? []);
  return {
    status: unstarted > 0 ? 'running' : status,
    total: sum(({ total }) => total),
    replayed: sum(({ replayed }) => replayed),
    skipped: sum(({ skipped }) => skipped),
    outcome: {
      delivered: outcomeSum('delivered'),
      failed: outcomeSum('failed'),
      cancelled: outcomeSum('cancelled'),
      waiting: outcomeSum('waiting'),
      unknown: outcomeSum('unknown'),
    },
    finishedAtMs:
      unstarted === 0 && finished.length > 0 && finished.length === replays.length ? Math.max(...finished) : null,
  };
}
