/** The rows of the live tail: a bounded list of the newest, which can be paused. */
import type { TailedAttempt } from '@posthorn/operator-api';

export interface LiveAttempt extends TailedAttempt {
  /** Its place in the stream. */
  id: string;
}

/** Rows that the list keeps. */
export const MAX_ROWS = 200;

interface Rows {
  /** The newest first. */
  rows: LiveAttempt[];
  /** What has come while the list was paused, the newest first; at most as many as are shown. */
  waiting: LiveAttempt[];
  /** All that have come since it was paused. */
  waitingCount: number;
  isPaused: boolean;
  /** Attempts that were left out; null if nobody knows how many. */
  dropped: number | null;
  lastId: string | undefined;
  /** Why there is no stream now. */
  error: Error | null;
}

export type Change =
  | { kind: 'attempt'; attempt: LiveAttempt }
  | { kind: 'gap'; dropped: number | null }
  | { kind: 'place'; lastId: string | undefined }
  | { kind: 'failed'; error: Error }
  | { kind: 'opened' | 'paused' | 'resumed' };

export const noRows: Rows = {
  rows: [],
  waiting: [],
  waitingCount: 0,
  isPaused: false,
  dropped: 0,
  lastId: undefined,
  error: null,
};

export function changeRows(state: Rows, change: Change): Rows {
  const { rows, waiting, isPaused, waitingCount, dropped } = state;
  switch (change.kind) {
    case 'attempt': {
      const { attempt } = change;
      const lastId = attempt.id;
      if (!isPaused) return { ...state, lastId, rows: [attempt, ...rows].slice(0, MAX_ROWS) };
      const held = [attempt, ...waiting].slice(0, MAX_ROWS);
      return { ...state, lastId, waiting: held, waitingCount: waitingCount + 1 };
    }
    case 'gap':
      return { ...state, dropped: dropped === null || change.dropped === null ? null : dropped + change.dropped };
    case 'place':
      return { ...state, lastId: change.lastId };
    case 'failed':
      return { ...state, error: change.error };
    case 'opened':
      return { ...state, error: null };
    case 'paused':
      return { ...state, isPaused: true };
    case 'resumed':
      return {
        ...state,
        isPaused: false,
        rows: [...waiting, ...rows].slice(0, MAX_ROWS),
        waiting: [],
        waitingCount: 0,
      };
    default:
      return change satisfies never;
  }
}
