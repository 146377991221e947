/** Turns an invalid cursor into a problem for the caller. */
import { AppError } from '@posthorn/core';
import { BadCursor } from '@posthorn/store';
import type { ErrorRequestHandler } from 'express';

/** Throws an `AppError` `invalid_fields` for a cursor that no list returned, and any other error unchanged. */
export const cursorProblem: ErrorRequestHandler = (error, _request, _response, _next) => {
  if (!(error instanceof BadCursor)) throw error;
  const fields = [{ path: 'cursor', message: error.message }];
  throw new AppError('invalid_fields', 'The query is not valid.', { fields });
};
