/** Refuses calls about what does not exist, or not any more. */
import { AppError } from '@posthorn/core';

/** Throws `AppError` `not_found`. */
export function missing(what: string): never {
  throw new AppError('not_found', `There is no such ${what}.`);
}

/** The same for what is kept only for a time. */
export function missingOrExpired(what: 'event' | 'delivery'): never {
  missing(`${what}, or it has expired (RETENTION, RETENTION_SUCCEEDED)`);
}
