/**
 * The time by the console's clock: with a wrong clock of the browser, a countdown of minutes could show days, or a time
 * long ago.
 */

/** Smaller differences come from the `Date` header, which has whole seconds, and from its way to the browser. */
const MAX_DIFFERENCE_MS = 5_000;

let offsetMs = 0;

/** Learns the console's time from a response that has just begun to arrive. */
export function learnTime({ headers }: Response): void {
  const consoleMs = Date.parse(headers.get('date') ?? '');
  if (Math.abs(consoleMs - now()) > MAX_DIFFERENCE_MS) offsetMs = consoleMs - Date.now();
}

export const now = (): number => byConsole(Date.now());

/** Returns the console's time at a time of the browser's clock. */
export const byConsole = (browserMs: number): number => browserMs + offsetMs;
