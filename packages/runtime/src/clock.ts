/** Time as the apps see it, so that a test can be in charge of it. */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };
