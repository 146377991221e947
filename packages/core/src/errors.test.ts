/** The errors of both HTTP APIs. */
import { expect, it } from '@jest/globals';
import { AppError, errorCodes, StartError } from './index.ts';

it('gives each error code the status of the interface (section 4) and a title of its own', () => {
  const statuses = Object.fromEntries(Object.entries(errorCodes).map(([code, { status }]) => [code, status]));
  expect(statuses).toEqual({
    bad_request: 400,
    request_timeout: 408,
    expectation_failed: 417,
    headers_too_large: 431,
    invalid_json: 400,
    unauthorized: 401,
    forbidden_environment: 403,
    forbidden_csrf: 403,
    not_found: 404,
    method_not_allowed: 405,
    conflict: 409,
    body_too_large: 413,
    unsupported_media_type: 415,
    invalid_fields: 422,
    too_many_requests: 429,
    quota_exceeded: 429,
    internal: 500,
    overloaded: 503,
    stopping: 503,
    not_changed: 503,
    unavailable: 503,
  });
  const titles = Object.values(errorCodes).map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
});

it('keeps in an AppError what the caller is told, and its cause for the log', () => {
  const cause = new Error('ECONNREFUSED');
  const fields = [{ path: 'url', message: 'no' }];
  const error = new AppError('unavailable', 'Try again.', { cause, fields, retryAfterS: 1 });
  expect(error).toMatchObject({
    name: 'AppError',
    code: 'unavailable',
    status: 503,
    message: 'Try again.',
    publicMessage: 'Try again.',
    fields: { listed: fields, more: 0 },
    retryAfterS: 1,
  });
  expect(error.cause).toBe(cause);
  expect(new AppError('not_found', 'No.')).toMatchObject({ status: 404, cause: undefined, fields: undefined });
});

it('names a StartError so that it can be told from other errors', () => {
  expect(new StartError('No Redis.').name).toBe('StartError');
});
