/** Turns an invalid cursor into a problem for the caller. */
import { AppError } from '@posthorn/core';
import { BadCursor } from '@posthorn/store';

/** Returns an `AppError` `invalid_fields` for a cursor that no list returned, and any other error unchanged. */
export function cursorProblem(error: unknown): unknown {
  if (!(error instanceof BadCursor)) return error;
  return new AppError('invalid_fields', 'The query is not valid.', {
    fields: [{ path: 'cursor', message: error.message }],
  });
}
