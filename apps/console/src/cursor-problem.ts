/** Turns an invalid cursor into a problem for the caller. */
import { AppError } from '@posthorn/core';
import { BadCursor } from '@posthorn/store';
import type { ErrorRequestHandler } from 'express';

/** Throws an `AppError` `invalid_fields` for a cursor that no list returned, and any other error unchanged. */
export const cursorProblem: ErrorRequestHandler = (error, request, _response, _next) => {
  if (!(error instanceof BadCursor)) throw error;
  const fields = [{ path: 'cursor', message: error.message }];
  const what = request.method === 'POST' ? 'The body' : 'The query';
  throw new AppError('invalid_fields', `${what} is not valid.`, { fields });
};
