/** The source of the time, which a test can replace. */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
}

/** The system clock. */
export const systemClock: Clock = { now: () => Date.now() };
