/** Names the record in the error of one that is not as it must be: the log of a call or a job has no key. */

/** The largest time that a `Date` can have, in milliseconds. */
const MAX_TIME_MS = 8.64e15;

/** The error of a record that can't be read; `what` names it. */
export function unreadable(what: string, cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Error(`The record of ${what} can't be read: ${reason}`, { cause });
}

/**
 * Returns what `decode` returns. Throws `unreadable` if that throws, or if a number whose name ends with `Ms` is no
 * time: that would only be found where it is written as text.
 */
export function decodeNamed<T extends object | undefined>(what: string, decode: () => T): T {
  try {
    const decoded = decode();
    if (decoded) checkTimes(decoded);
    return decoded;
  } catch (error) {
    throw unreadable(what, error);
  }
}

/** Throws if a number of `decoded` whose name ends with `Ms` is no time. */
export function checkTimes(decoded: object): void {
  for (const [name, value] of Object.entries(decoded)) {
    if (typeof value === 'number' && name.endsWith('Ms') && !(Math.abs(value) <= MAX_TIME_MS))
      throw new Error(`its ${name} is ${value}`);
  }
}
