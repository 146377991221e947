/** Turns errors into responses: RFC 9457 problem details, the same for all HTTP APIs. */
import {
  AppError,
  errorCodes,
  type FieldError,
  type FieldErrors,
  parseTraceparent,
  StorageUnavailable,
} from '@posthorn/core';
import { boundedLog, createSeldom, type Logger } from '@posthorn/runtime';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { z } from 'zod';

/** `Retry-After` while Redis is unavailable. */
const RETRY_AFTER_S = 5;

/** Returns an `AppError` for any error: storage failures are `unavailable`, unknown errors `internal`. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof StorageUnavailable) return storageUnavailable(error);
  // Express throws a URIError for a path it cannot decode.
  if (error instanceof URIError) return new AppError('not_found', 'No route has this path.', { cause: error });
  return new AppError('internal', 'Internal error; it has been logged.', { cause: error });
}

/**
 * Returns the error for a call that failed because of the storage. `detail` replaces the usual text, unless Redis is
 * full.
 */
export function storageUnavailable(cause: Error, detail = 'Storage is unavailable; retry shortly.'): AppError {
  // The error of a full Redis. Only a person can make room, so the text does not advise to retry.
  const isFull = cause.message.startsWith('OOM ');
  const message = isFull ? 'Storage is full: it takes no changes.' : detail;
  return new AppError('unavailable', message, { cause, retryAfterS: RETRY_AFTER_S });
}

/** Returns 503 until storage is open. It does not say why: the caller may be anybody. */
export function requireStorage(isOpen: () => boolean): RequestHandler {
  const detail = 'Storage has not been reached since the start of this process; its log says why.';
  return (_request, _response, next) => {
    next(isOpen() ? undefined : storageUnavailable(new Error('Storage is not open yet.'), detail));
  };
}

/** Invalid fields that a problem document lists. */
const MAX_FIELD_ERRORS = 20;
/** A path is truncated to this length, because a key may be as long as the body. */
const MAX_PATH_LENGTH = 200;

/**
 * Returns the problem document of an error. It lists at most `maxFields` invalid fields and says how many more there
 * are.
 */
export function problemDocument(error: AppError, maxFields = MAX_FIELD_ERRORS): Record<string, unknown> {
  return {
    type: 'about:blank',
    title: errorCodes[error.code].title,
    status: error.status,
    detail: error.publicMessage,
    code: error.code,
    ...(error.fields === undefined ? {} : { errors: listFields(error.fields, maxFields) }),
  };
}

/** While Redis is away, every call is refused: one line in this time says so, and how many calls there were. */
const LOG_REJECTED_EVERY_MS = 1_000;

/**
 * The last middleware of an API. Turns every error into a problem document. Logs the first internal errors of
 * a second and the number of the others, and the latest refusal with 503 at most once a second, with the number of
 * `calls` since the line before.
 */
export function problemHandler(logger: Logger, now = () => performance.now()): ErrorRequestHandler {
  const logFailed = boundedLog((line) => logger.error(line, 'request.failed'));
  const mayLog = createSeldom({ everyMs: LOG_REJECTED_EVERY_MS, now });
  let calls = 0;
  const logRejected = (line: object) => {
    calls += 1;
    if (!mayLog()) return;
    logger.warn({ ...line, calls }, 'request.rejected');
    calls = 0;
  };
  return (thrown, request, response, next) => {
    const error = toAppError(thrown);
    const { method, path, headers } = request;
    const trace = parseTraceparent(headers.traceparent);
    const line = { err: error.cause ?? error, method, path, status: error.status, trace_id: trace?.traceId };
    if (error.status === 500) logFailed(line);
    else if (error.status === 503) logRejected(line);
    if (response.headersSent) {
      next(thrown);
      return;
    }
    if (error.retryAfterS !== undefined) response.set('Retry-After', String(error.retryAfterS));
    response
      .status(error.status)
      .type('application/problem+json')
      .send(JSON.stringify(problemDocument(error)));
  };
}

/** Returns 404 for requests that no route matches. */
export const notFoundHandler: RequestHandler = (request, _response, next) => {
  next(new AppError('not_found', `No route for ${request.method} ${request.path}.`));
};

function listFields({ listed, more }: FieldErrors, maxFields: number): FieldError[] {
  const left = more + Math.max(0, listed.length - maxFields);
  const rest = { path: '', message: `${left} more invalid fields are not listed` };
  return left === 0 ? listed : [...listed.slice(0, maxFields), rest];
}

/**
 * Returns the invalid fields of a failed validation with dotted paths: the first `MAX_FIELD_ERRORS`, and how many more
 * there are.
 */
export function fieldErrors(error: z.ZodError): FieldErrors {
  const listed: FieldError[] = [];
  let more = 0;
  const add = (path: PropertyKey[], message: string) => {
    if (listed.length === MAX_FIELD_ERRORS) more += 1;
    else listed.push({ path: shownPath(path), message });
  };
  for (const issue of error.issues) {
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys) add([...issue.path, key], 'Unknown field');
    } else if (issue.code === 'custom' && typeof issue.params?.more === 'number') {
      more += issue.params.more;
    } else {
      add(issue.path, messageOf(issue));
    }
  }
  return { listed, more };
}

function shownPath(path: PropertyKey[]): string {
  const text = path.join('.');
  return text.length <= MAX_PATH_LENGTH ? text : `${text.slice(0, MAX_PATH_LENGTH)}…`;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined && /received undefined/.test(issue.message))
    return 'Required';
  return issue.message.replace(/^(?:Invalid input|Invalid option|Too small|Too big): e/, 'E');
}

/** Parses input with a schema. Throws `AppError` `invalid_fields` that names each invalid field. */
export function parseFields<S extends z.ZodType>(schema: S, input: unknown, what: string): z.infer<S> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new AppError('invalid_fields', `${what} is not valid.`, { fields: fieldErrors(parsed.error) });
}
