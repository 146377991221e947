/**
 * What came back from an attempt or a validation: the beginning of the response, and how the connection went. All of it
 * is untrusted text.
 */

/** The response headers that are kept. */
export const KEPT_HEADERS = [
  'content-type',
  'content-encoding',
  'retry-after',
  'location',
  'server',
  'x-request-id',
] as const;

/** How much of a body is kept by default, in bytes. */
export const DEFAULT_RESPONSE_EXCERPT_BYTES = 1_024;

/** The largest setting: no more of a body is ever read. */
export const MAX_RESPONSE_EXCERPT_BYTES = 16_384;

export interface AttemptResponse {
  /** Those of `KEPT_HEADERS` that the response had. */
  headers: Record<string, string>;
  /** The beginning of the body that had arrived, as text. Empty if the body is compressed. */
  body: string;
  /** Whether the body is longer than what was kept, or had not ended when it was kept. */
  isBodyTruncated: boolean;
}

/** Durations are in milliseconds, and null for a step that was not made or did not end. */
export interface AttemptConnection {
  /** The IP that was connected to or tried last. */
  ip: string | null;
  /** Whether the request was sent over a connection that an earlier attempt had opened. */
  isReused: boolean;
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  /** From the sending of the request to the head of the response. */
  firstByteMs: number | null;
  /** The code of the error that ended the attempt, from DNS, the system, TLS or the limits of a response. */
  errorCode: string | null;
  certificate: { subject: string; issuer: string; validToMs: number } | null;
}

export interface CameBack {
  response: AttemptResponse | null;
  connection: AttemptConnection | null;
}

/** Control characters but tab and newline, and those that change the direction of text. */
const UNSAFE = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/**
 * Returns text of a stranger that is safe to show, also on a terminal: line ends become newlines, other control
 * characters U+FFFD.
 */
export function plainText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNSAFE, '\ufffd');
}

/** The beginning of such a text, at most `maxLength` units of UTF-16, in one line. */
export function plainLine(text: string, maxLength: number): string {
  return plainText(text.slice(0, maxLength))
    .trim()
    .replaceAll(/[\n\t]+/g, ' ');
}
