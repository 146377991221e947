/** What is sent, and how it ended: socket, TLS and HTTP errors reduced to a few outcomes. */
import { type AttemptError, type CameBack, errorOfStatus } from '@posthorn/core';
import { NameError } from './resolve.ts';

export interface SendRequest {
  url: string;
  headers: Record<string, string>;
  /** The exact text to send, as UTF-8. */
  body: string | Buffer;
  /**
   * Called once the IP is known and before anything is sent to it; again if another IP of the name is connected to. If
   * it returns false, the attempt is `not_admitted`.
   */
  admit?: ((ip: string) => boolean) | undefined;
  /** Called just before the request is written. If it returns false, nothing is sent and the attempt is `aborted`. */
  mayStart?: (() => boolean) | undefined;
  /**
   * How much of the body of a failed response to keep for `cameBack`, in bytes; 0 or undefined: there is no `cameBack`.
   */
  excerptBytes?: number | undefined;
}

/**
 * How an attempt ended. A failed attempt is a value, never an exception. `ip`: the IP that was connected to or tried
 * last; null if there was none. `isConnected`: the connection (and TLS handshake) was established before the timeout.
 * `detail`: the code of the error, from node:dns (for `dns`: `ENOTFOUND`, `ETIMEOUT`, `ESERVFAIL`, …), the system,
 * OpenSSL or `ResponseError`.
 */
export type SendOutcome =
  | { kind: 'responded'; statusCode: number; ip: string | null }
  | { kind: 'timed_out'; isConnected: boolean; ip: string | null }
  | { kind: 'connection_failed'; error: 'dns' | 'connection' | 'tls'; detail: string; ip: string | null }
  | { kind: 'address_blocked'; reason: 'private_address' | 'local_address'; ip: string | null }
  | { kind: 'not_admitted'; ip: string }
  | { kind: 'aborted'; ip: null };

/**
 * An outcome, and with `excerptBytes` what came back. `cameBack` returns what has arrived at the time of the call:
 * nobody waits for a body, so the later it is called, the more of it there may be.
 */
export type SendResult = SendOutcome & { cameBack?: (() => CameBack) | undefined };

/** Sends requests. Every new connection is checked by the address guard. */
export interface Sender {
  /** Makes one attempt. Rejects only if code that it needs can't be loaded (`createOneOffSender`). */
  send(request: SendRequest): Promise<SendResult>;
  /** Closes all connections. */
  close(): void;
}

/** A response that exceeds one of the sender's limits, or that was not requested. */
export class ResponseError extends Error {
  override name = 'ResponseError';
  readonly code: string;
  constructor(
    code:
      | 'TOO_MANY_INTERIM_RESPONSES'
      | 'TOO_MANY_CHUNKS'
      | 'RESPONSE_TOO_LARGE'
      | 'UNREQUESTED_RESPONSE'
      | 'INVALID_RESPONSE'
      | 'UPGRADE'
      | 'CLOSED'
      | 'ERR_TLS_TOO_MANY_MESSAGES',
  ) {
    super(code);
    this.code = code;
  }
}

/** An IP that may not be connected to. `result` is that of the attempt. */
export class IpRefused extends Error {
  override name = 'IpRefused';
  readonly result: Extract<SendOutcome, { kind: 'address_blocked' | 'not_admitted' }>;
  constructor(result: IpRefused['result']) {
    super(`${result.ip}: ${result.kind}`);
    this.result = result;
  }
}

const TLS_CODES =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH|CRL_|ERROR_IN_C)/;
/** undici messages and their usual codes. */
const SAME_CODES: Record<string, string> = {
  'other side closed': 'ECONNRESET',
  'bad upgrade': 'UPGRADE',
  'bad response': 'INVALID_RESPONSE',
};

/** Translates an error into a result. */
export function resultOfError(error: NodeJS.ErrnoException, ip: string | null): SendOutcome {
  // got wraps the errors of a lookup.
  const cause = error.cause instanceof Error ? error.cause : error;
  if (cause instanceof IpRefused) return cause.result;
  if (cause instanceof NameError) return { kind: 'connection_failed', error: 'dns', detail: cause.code, ip: null };
  // undici's parser gives its errors no code.
  const otherwise = error.name === 'HTTPParserError' ? 'INVALID_RESPONSE' : 'UNKNOWN';
  const detail = (error.code === 'UND_ERR_SOCKET' && SAME_CODES[error.message]) || (error.code ?? otherwise);
  return { kind: 'connection_failed', error: TLS_CODES.test(detail) ? 'tls' : 'connection', detail, ip };
}

/** Why an attempt with this outcome failed; null if it succeeded. */
export function errorOfOutcome(
  outcome: Exclude<SendOutcome, { kind: 'aborted' | 'not_admitted' }>,
): AttemptError | null {
  switch (outcome.kind) {
    case 'responded':
      return errorOfStatus(outcome.statusCode);
    case 'timed_out':
      return 'timeout';
    case 'connection_failed':
      return outcome.error;
    case 'address_blocked':
      return 'address_blocked';
    default:
      return outcome satisfies never;
  }
}
