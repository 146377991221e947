/**
 * Finds out why a receiver refuses a signature: what differs between the body and header that it saw and those that
 * were sent.
 */
import { isDeepStrictEqual } from 'node:util';
import { ADVISED_TOLERANCE_S, isSignedWith, parseSignatureHeader, type SignatureHeader } from './signature.ts';

interface SignatureCase {
  /**
   * The value of `Service-Signature` as the receiver saw it. Its name in front of it, and what a log or code has around
   * it, are ignored.
   */
  header: string;
  /** The body as the receiver saw it. */
  body: string;
  /** The secret that signs now. */
  secret: string;
  /** The secret before the last rotation, if it is still known. */
  previousSecret?: string | undefined;
  /** Bodies that Posthorn may have sent: those of the events with the id in question. */
  sent: readonly string[];
  /** The receiver's time when the request arrived, in seconds since 1970. Without it, clocks are not compared. */
  receivedAtS?: number | undefined;
  /** The time now, in seconds since 1970. Without it, a signature from the future is not noticed. */
  nowS?: number;
}

type SignatureFindingKind =
  | 'malformed_header'
  | 'byte_order_mark'
  | 'trailing_newline'
  | 'surrounding_space'
  | 'line_endings'
  | 'quoted_body'
  | 'reserialized_body'
  | 'truncated_body'
  | 'changed_body'
  | 'unknown_signature'
  | 'previous_secret'
  | 'clock_off';

/** One thing that is wrong: `message` says what, and what to do. */
interface SignatureFinding {
  kind: SignatureFindingKind;
  message: string;
}

interface SignatureDiagnosis {
  /** Whether a receiver that follows the documentation accepts it. */
  correct: boolean;
  /** The secret that made the signature; null if it is unknown. */
  secret: 'current' | 'previous' | null;
  /** The time in the header, in seconds since 1970; null if it has none. */
  signedAtS: number | null;
  /** The receiver's clock minus the time in the header, in seconds; null if one of them is unknown. */
  clockOffS: number | null;
  /** The first difference from the body that was sent, in characters from its start; null if none is known. */
  difference: { at: number; sent: string; received: string } | null;
  findings: SignatureFinding[];
}

/** The characters of each body that show a difference: some before it, more after it. */
const CONTEXT_BEFORE = 12;
const CONTEXT_AFTER = 28;

const RAW_BODY = 'Verify the bytes of the request body, before any parser or framework changes them.';

/**
 * Changes that a body may have undergone, each with a function that undoes it. The first that fits the signature is
 * reported.
 */
const REPAIRS: { kind: SignatureFindingKind; undo(body: string): string | undefined; message: string }[] = [
  {
    kind: 'byte_order_mark',
    undo: (body) => (body.startsWith('\uFEFF') ? body.slice(1) : undefined),
    message: 'The body begins with a byte order mark that was not sent.',
  },
  {
    kind: 'trailing_newline',
    undo: (body) => (/[\r\n]$/.test(body) ? body.trimEnd() : undefined),
    message: 'The body ends with a newline that was not sent. An editor, echo or a log may have added it.',
  },
  {
    kind: 'surrounding_space',
    undo: (body) => body.trim(),
    message: 'The body has white space around it that was not sent.',
  },
  {
    kind: 'line_endings',
    undo: (body) => body.replaceAll('\r\n', '\n'),
    message: 'The line endings of the body were changed to CRLF.',
  },
  {
    kind: 'quoted_body',
    undo: (body) => {
      const value = parse(body)?.value;
      return typeof value === 'string' ? value : undefined;
    },
    message: 'The body was serialized once more: it is a JSON string that contains the JSON that was sent.',
  },
  { kind: 'reserialized_body', undo: compact, message: 'The body was parsed and serialized again.' },
];

/**
 * Compares what a receiver saw with what its subscription's secrets sign. A finding names everything that is wrong; the
 * diagnosis is correct if there is none. The work is limited: at most 14 signatures are computed, and two for each body
 * that may have been sent.
 */
export function diagnoseSignature(seen: SignatureCase): SignatureDiagnosis {
  const header = parseSignatureHeader(headerValue(seen.header));
  const signedAtS = header?.timestampS ?? null;
  const unknown = { correct: false, secret: null, signedAtS, clockOffS: null, difference: null };
  if (header === undefined || header.signatures.length === 0)
    return { ...unknown, findings: [{ kind: 'malformed_header', message: describeMalformed(header) }] };

  const match = findBody(header, seen);
  const clockOffS = seen.receivedAtS === undefined ? null : seen.receivedAtS - header.timestampS;
  const findings = [...match.findings];
  if (match.secret === 'previous') findings.push(PREVIOUS_SECRET);
  const aheadS = seen.nowS === undefined || match.secret === null ? 0 : header.timestampS - seen.nowS;
  if (aheadS > ADVISED_TOLERANCE_S) findings.push(futureFinding(aheadS));
  else if (clockOffS !== null && Math.abs(clockOffS) > ADVISED_TOLERANCE_S) findings.push(clockFinding(clockOffS));
  const difference = match.body === undefined ? null : firstDifference(match.body, seen.body);
  return { correct: findings.length === 0, secret: match.secret, signedAtS, clockOffS, difference, findings };
}

const PREVIOUS_SECRET: SignatureFinding = {
  kind: 'previous_secret',
  message:
    'It was signed with the secret before the last rotation only. A receiver that has the current one refuses it; later attempts are signed with the current one.',
};

function describeMalformed(header: SignatureHeader | undefined): string {
  return header === undefined
    ? 'The header has not exactly one time: expected t=<unix seconds>,v1=<64 hexadecimal digits>.'
    : 'The header has no signature v1 of 64 lowercase hexadecimal digits. It may have been cut off or changed on its way.';
}

/** Only a worker signs, so no clock but its own can have set the time of a signature that fits. */
function futureFinding(aheadS: number): SignatureFinding {
  const message = `The signature is dated ${aheadS} s in the future, and receivers allow ${ADVISED_TOLERANCE_S} s: the clock of the worker that sent it is fast, not that of the receiver. See PosthornClockSkew in docs/runbooks.md.`;
  return { kind: 'clock_off', message };
}

function clockFinding(offS: number): SignatureFinding {
  const [direction, why] =
    offS > 0
      ? ['after', 'Its clock is fast, or the request waited or was sent again from a log.']
      : ['before', 'Its clock is slow.'];
  const message = `Clock off by ${Math.abs(offS)} s: the receiver's time is ${direction} that of the signature, and receivers allow ${ADVISED_TOLERANCE_S} s. ${why} Synchronize the receiver's clock.`;
  return { kind: 'clock_off', message };
}

interface Match {
  secret: 'current' | 'previous' | null;
  /** The body that was signed; undefined if it is unknown. */
  body: string | undefined;
  findings: SignatureFinding[];
}

/**
 * Finds the body and the secret that the signature was made with: the body as it is, with one change undone, or as
 * Posthorn has it.
 */
function findBody(header: SignatureHeader, { body, secret, previousSecret, sent }: SignatureCase): Match {
  const secretOf = (candidate: string): Match['secret'] => {
    if (isSignedWith(header, secret, candidate)) return 'current';
    return previousSecret !== undefined && isSignedWith(header, previousSecret, candidate) ? 'previous' : null;
  };
  const asItIs = secretOf(body);
  if (asItIs !== null) return { secret: asItIs, body, findings: [] };
  for (const { kind, undo, message } of REPAIRS) {
    const repaired = undo(body);
    if (repaired === undefined || repaired === body) continue;
    const found = secretOf(repaired);
    if (found !== null)
      return { secret: found, body: repaired, findings: [{ kind, message: `${message} ${RAW_BODY}` }] };
  }
  for (const original of sent) {
    const found = secretOf(original);
    if (found !== null) return { secret: found, body: original, findings: [compareBodies(original, body)] };
  }
  return { secret: null, body: undefined, findings: [unknownSignature(sent.includes(body), sent.length > 0)] };
}

function compareBodies(sent: string, received: string): SignatureFinding {
  const [before, after] = [parse(sent), parse(received)];
  if (before && after && isDeepStrictEqual(before.value, after.value)) {
    const message = `The body was parsed and serialized again: it has the same content in other characters. ${RAW_BODY}`;
    return { kind: 'reserialized_body', message };
  }
  if (sent.startsWith(received)) {
    const message = `The body was cut off after ${received.length} of ${sent.length} characters. Read it to its end, and check the size limits on its way.`;
    return { kind: 'truncated_body', message };
  }
  return { kind: 'changed_body', message: `The body is not the one that was sent: its content differs. ${RAW_BODY}` };
}

function unknownSignature(isBodySent: boolean, isEventKnown: boolean): SignatureFinding {
  const other =
    'it belongs to another delivery or another subscription, its time was changed, or the secret was rotated more than once since';
  if (isBodySent)
    return { kind: 'unknown_signature', message: `The body is as it was sent, but the header does not fit: ${other}.` };
  if (isEventKnown)
    return {
      kind: 'unknown_signature',
      message: `The header fits neither this body nor the one that Posthorn has for this event: ${other}.`,
    };
  const message = `No secret of this subscription made this signature for this body. Either the body was changed, or the header does not fit: ${other}. With the id of the event, the body can be compared with the one that was sent.`;
  return { kind: 'unknown_signature', message };
}

/** Returns null if the bodies are equal. */
function firstDifference(sent: string, received: string): SignatureDiagnosis['difference'] {
  if (sent === received) return null;
  let at = 0;
  while (at < sent.length && sent[at] === received[at]) at++;
  const excerpt = (text: string) => text.slice(Math.max(0, at - CONTEXT_BEFORE), at + CONTEXT_AFTER);
  return { at, sent: excerpt(sent), received: excerpt(received) };
}

function headerValue(pasted: string): string {
  return pasted
    .trim()
    .replace(/^["']?service-signature["']?\s*:/i, '')
    .replace(/[,;]\s*$/, '')
    .trim()
    .replace(/^(["'])(.*)\1$/s, '$2');
}

/** Returns undefined for text that is not JSON. */
function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/**
 * Returns the JSON without spaces, as JSON.stringify writes it; undefined for text that is not JSON or nested too
 * deeply.
 */
function compact(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}
