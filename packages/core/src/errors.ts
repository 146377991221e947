/** The operational errors that a caller of either HTTP API can get. packages/http turns them into responses. */

/** Every error code with its HTTP status and title: one table, so that no two places disagree. */
export const errorCodes = {
  invalid_json: { status: 400, title: 'The body is not valid JSON' },
  bad_request: { status: 400, title: 'The request is not valid HTTP' },
  unauthorized: { status: 401, title: 'Missing or unknown credentials' },
  forbidden_environment: { status: 403, title: 'This key may not publish to that environment' },
  forbidden_csrf: { status: 403, title: 'A call with a session cookie needs its CSRF token' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  conflict: { status: 409, title: 'Conflict with the current state' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body must be application/json' },
  expectation_failed: { status: 417, title: 'This Expect header is not supported' },
  invalid_fields: { status: 422, title: 'Some fields are not valid' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  quota_exceeded: { status: 429, title: 'The quota of this publisher is used up; nothing was accepted' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'Internal error' },
  overloaded: { status: 503, title: 'Too many requests in flight; nothing was accepted' },
  // Not "nothing was accepted": a command without a reply may have been applied.
  unavailable: { status: 503, title: 'Storage is unavailable' },
  stopping: { status: 503, title: 'The process is stopping' },
  not_changed: { status: 503, title: 'Storage is unavailable; nothing was changed' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof errorCodes;

/** One bad field: `path` in dotted form from the top of the body or query, `message` for a person. */
export interface FieldError {
  path: string;
  message: string;
}

/** Bad fields, and how many more there are than are listed. */
export interface FieldErrors {
  listed: FieldError[];
  more: number;
}

/**
 * An operational failure with a message that is safe to show to the caller.
 * `cause` is for the log alone; `fields` goes with `invalid_fields`; `retryAfterS` (seconds) with 429 and 503.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly publicMessage: string;
  readonly fields: FieldErrors | undefined;
  readonly retryAfterS: number | undefined;

  constructor(
    code: ErrorCode,
    publicMessage: string,
    options: { cause?: unknown; fields?: FieldError[] | FieldErrors; retryAfterS?: number } = {},
  ) {
    super(publicMessage, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.status = errorCodes[code].status;
    this.publicMessage = publicMessage;
    this.fields = Array.isArray(options.fields) ? { listed: options.fields, more: 0 } : options.fields;
    this.retryAfterS = options.retryAfterS;
  }
}

/**
 * Why a process can't start, or go on, with a message for the person who starts it, and the exit code of the process.
 */
export class StartError extends Error {
  override name = 'StartError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Redis is unreachable, full, or accepts no writes at the moment. The command that failed may still have been applied.
 * `cause` is the error of the Redis client, if there was one. Code, and mostly message too, are those of the cause,
 * since ioredis and BullMQ look at them.
 */
export class StorageUnavailable extends Error {
  override name = 'StorageUnavailable';
  override readonly cause: (Error & { code?: unknown }) | undefined;
  readonly code: unknown;
  /** Whether it is certain that the command was not applied. */
  readonly isRefusal: boolean;

  constructor(message: string, cause?: Error, { isRefusal = false } = {}) {
    super(message);
    this.cause = cause;
    this.code = this.cause?.code;
    this.isRefusal = isRefusal;
  }
}

/** A change that failed because of the storage, and of which it is known how much was made before. */
export class ChangeFailed extends StorageUnavailable {
  /** What was made, and whether to repeat the call, in sentences for the caller; undefined: nothing was changed. */
  readonly made: string | undefined;

  constructor({ message, cause, isRefusal }: StorageUnavailable, made?: string) {
    super(message, cause, { isRefusal });
    this.made = made;
  }
}

/**
 * One partition of a Redis Cluster is unavailable; the others may work. Further calls to it are refused at once
 * (packages/store's circuit-breaker.ts).
 */
export class PartitionUnavailable extends StorageUnavailable {}
