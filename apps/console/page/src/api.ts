/** Calls the operator API with the session cookie. Problem documents become errors with a message for the user. */
import type { Page } from '@posthorn/operator-api';
import { learnTime } from './clock.ts';

/** A failed call. `message` can be shown to the user. */
export class ApiError extends Error {
  readonly status: number;
  /** Messages by field. */
  readonly fields: Record<string, string>;
  /** Of a problem document, for example `not_found`. */
  readonly code: string | undefined;
  constructor(status: number, message: string, fields: Record<string, string> = {}, code?: string) {
    super(message);
    this.status = status;
    this.fields = fields;
    this.code = code;
  }
}

/** Whether the error is an answer about what was asked, for example that it was deleted, and not that there is none. */
export const isAnswer = (error: Error | null): error is ApiError =>
  error instanceof ApiError && error.status >= 400 && error.status < 500;

/** Whether the error says that there is no such resource. */
export const isMissing = (error: Error | null): boolean => error instanceof ApiError && error.status === 404;

/** The code of a problem document that says that Redis can't be used. */
const STORAGE_AWAY = 'unavailable';

/** Whether the console answers, but can't use Redis, or not all of it. */
export const isStorageAway = (error: Error): boolean => error instanceof ApiError && error.code === STORAGE_AWAY;

/** After this time without an answer a read is given up. */
export const READ_TIMEOUT_MS = 10_000;

/** The path at which operators sign in: there, 401 is about a token. */
const SESSION_PATH = '/v1/session';

let csrfToken: string | null = null;
/** Sets the CSRF token that later calls send, unless they are GET. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

export type QueryParameters = Record<string, string | number | null | undefined>;

/** Addresses that one bulk replay takes: the API accepts no more. */
export const MAX_REPLAYED_ADDRESSES = 50;

/** Returns the parameters that have a value, as the API takes them. */
export function givenOf(query: QueryParameters): Record<string, string> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

/** Returns the path with the parameters that have a value. */
export function withQuery(path: string, query: QueryParameters): string {
  const given = new URLSearchParams(givenOf(query));
  return given.size === 0 ? path : `${path}?${given}`;
}

/** Returns the text of the response. Throws `ApiError`. */
export async function callText(method: string, path: string, body?: unknown): Promise<string> {
  const headers = new Headers();
  if (body !== undefined) headers.set('content-type', 'application/json');
  if (method !== 'GET' && csrfToken !== null) headers.set('x-csrf-token', csrfToken);
  const json = body === undefined ? null : JSON.stringify(body);
  // Changes have no time limit. A read has one, so that a read that hangs does not delay the next one.
  const signal = method === 'GET' ? AbortSignal.timeout(READ_TIMEOUT_MS) : null;
  const answer = async () => {
    const response = await fetch(path, { method, headers, body: json, signal });
    learnTime(response);
    return { response, text: await response.text() };
  };
  const also = method === 'GET' ? '' : ' The change may have been made: look before you repeat it.';
  const { response, text } = await answer().catch(() => {
    if (signal?.aborted) throw new ApiError(0, `The console has not answered for ${READ_TIMEOUT_MS / 1_000} s.`);
    throw new ApiError(0, `Cannot reach the console. Is it running, and are you online?${also}`);
  });
  if (!isOfConsole(response)) throw fromElsewhere(response, also);
  if (response.ok) return text;
  if (response.status === 401 && path !== SESSION_PATH)
    throw new ApiError(401, 'Your session has ended. Sign in in another tab, and repeat the action here.');
  // Tabs share the session cookie, but each keeps the CSRF token that it has read.
  if (response.status === 403)
    throw new ApiError(403, 'Somebody has signed in again in this browser, so nothing was changed. Repeat the action.');
  throw problemOf(response.status, text, method === 'GET');
}

/**
 * Whether the console answered, and not a proxy with a page of its own: for a sign-in, or because the console is down.
 */
function isOfConsole({ status, headers }: Response): boolean {
  return status === 204 || (headers.get('content-type') ?? '').includes('json');
}

function fromElsewhere({ status }: Response, also = ''): ApiError {
  const what = `Something in front of the console answered, such as a proxy (status ${status}).`;
  return new ApiError(0, `${what} Reload the page to see its answer.${also}`);
}

/** Resolves with the body of a stream of events, from the event after `lastId` on. Throws `ApiError`. */
export async function open(
  path: string,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const headers = new Headers(lastId === undefined ? {} : { 'last-event-id': lastId });
  const response = await fetch(path, { headers, signal });
  if (response.headers.get('content-type')?.startsWith('text/event-stream') && response.body) return response.body;
  throw isOfConsole(response) ? problemOf(response.status, await response.text(), true) : fromElsewhere(response);
}

/** Returns the parsed response. Throws `ApiError`. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const text = await callText(method, path, body);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/**
 * Changes page by page all that the filters match, since a call looks at a limited number. Resolves with the results.
 * The error of a call also says what the calls before it have done, in the words of `textOf`.
 */
export async function changeAll<T>(
  path: string,
  filters: QueryParameters,
  textOf: (results: readonly T[]) => string,
): Promise<T[]> {
  const results: T[] = [];
  let cursor: string | undefined;
  do {
    const body = givenOf({ ...filters, cursor });
    const { data, next_cursor: next } = await call<Page<T>>('POST', path, body).catch((error: unknown) => {
      if (results.length === 0 || !(error instanceof ApiError)) throw error;
      throw new ApiError(error.status, `${textOf(results)} For the others: ${error.message}`, error.fields);
    });
    results.push(...data);
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return results;
}

interface ProblemDocument {
  detail?: string;
  code?: string;
  errors?: { path: string; message: string }[];
}

/** Of a change, `detail` itself says what became of it, and Redis may be full and not away. */
function problemOf(status: number, text: string, isRead: boolean): ApiError {
  try {
    const {
      detail = `The console returned status ${status}.`,
      code,
      errors = [],
    } = JSON.parse(text) as ProblemDocument;
    const fields = Object.fromEntries(errors.map(({ path, message }) => [path, message]));
    const meaning =
      isRead && code === STORAGE_AWAY ? ' Deliveries wait until Redis is back; none is lost by that.' : '';
    return new ApiError(status, `${detail}${meaning}`, fields, code);
  } catch {
    return new ApiError(status, `The console returned status ${status}.`);
  }
}
