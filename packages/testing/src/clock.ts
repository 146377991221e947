/** A clock that a test sets. */

export interface FakeClock {
  now(): number;
  /** Moves time on, in milliseconds. */
  advance(ms: number): void;
}

export function fakeClock(startMs: number): FakeClock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    advance(ms) {
      nowMs += ms;
    },
  };
}
