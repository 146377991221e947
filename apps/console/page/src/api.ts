/** Calls the operator API with the session's cookie, and turns its problems into errors that can be shown. */
import type { z } from 'zod';
import type * as schemas from '../../src/schemas.ts';

export type Subscription = z.infer<typeof schemas.subscriptionSchema>;
export type SubscriptionWithSecret = z.infer<typeof schemas.subscriptionWithSecretSchema>;
export type Delivery = z.infer<typeof schemas.deliverySchema>;
export type DeliveryWithAttempts = z.infer<typeof schemas.deliveryWithAttemptsSchema>;
export type DeliveryRequest = z.infer<typeof schemas.requestSchema>;
export type PublishedEvent = z.infer<typeof schemas.eventSchema>;
export type Replay = z.infer<typeof schemas.replaySchema>;
export type AuditEntry = z.infer<typeof schemas.auditEntrySchema>;
export type Overview = z.infer<typeof schemas.overviewSchema>;
export type Attempts = Overview['last_hour'];
export type AddressAttempts = z.infer<typeof schemas.addressAttemptsSchema>;
export type FailedDeliveries = z.infer<typeof schemas.failedDeliveriesSchema>;
export type Session = z.infer<typeof schemas.sessionSchema>;
export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}

/** What the API answered instead of what was asked for; `message` is fit to be shown. */
export class ApiError extends Error {
  readonly status: number;
  /** Messages by field. */
  readonly fields: Record<string, string>;
  constructor(status: number, message: string, fields: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

let csrfToken: string | null = null;
/** Calls that change something carry the session's CSRF token from now on. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

export type Query = Record<string, string | number | null | undefined>;

/** A path with those of the parameters that have a value. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** The text of an answer. Throws `ApiError`. */
export async function callText(method: string, path: string, body?: unknown): Promise<string> {
  const changes = method !== 'GET';
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(changes && csrfToken !== null ? { 'x-csrf-token': csrfToken } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'The console does not answer. Is it running, and are you online?');
  }
  const text = await response.text();
  if (response.ok) return text;
  throw problemOf(response.status, text);
}

/** The answer. Throws `ApiError`. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const text = await callText(method, path, body);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function problemOf(status: number, text: string): ApiError {
  try {
    const problem = JSON.parse(text) as { detail?: string; errors?: { path: string; message: string }[] };
    const fields = Object.fromEntries((problem.errors ?? []).map(({ path, message }) => [path, message]));
    return new ApiError(status, problem.detail ?? `The console answered ${status}.`, fields);
  } catch {
    return new ApiError(status, `The console answered ${status}.`);
  }
}
