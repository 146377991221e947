/** Verifies signatures with Web Crypto, which Node, Deno, Bun and edge runtimes have. */

/** How far the time of a signature may be from now, in seconds, unless the receiver says otherwise. */
export const DEFAULT_TOLERANCE_S = 300;

/** Secrets whose keys are kept. A receiver has one or two; more than this would be one for each call. */
const MAX_KEYS = 100;
/** Not every runtime's types have `CryptoKey` as a global. */
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;
const keys = new Map<string, Promise<Key>>();

export interface SignatureCheck {
  /** The value of `Service-Signature`; undefined or null if the request has none. */
  header: string | null | undefined;
  /** During a rotation, the old and the new secret. */
  secrets: readonly string[];
  /** The body as it was received: parsed and serialized again, it may differ. */
  body: Uint8Array;
  /** Unix time in seconds; the system's by default. */
  nowS?: number | undefined;
  /** `DEFAULT_TOLERANCE_S` by default. */
  toleranceS?: number | undefined;
}

/**
 * Resolves with whether the header has a signature of this body, made with one of the secrets, at most `toleranceS`
 * seconds from now (specification 5). Malformed and missing headers are not valid; nothing that a caller sends makes it
 * reject. Rejects for an empty secret, and with a `TypeError` for one secret in place of a list, or a body that is no
 * bytes: no signature would be valid.
 */
export async function verifySignature(check: SignatureCheck): Promise<boolean> {
  const { header, secrets, body, nowS = Date.now() / 1000, toleranceS = DEFAULT_TOLERANCE_S } = check;
  if (!Array.isArray(secrets)) throw new TypeError('The secrets to verify a signature with must be a list.');
  if (!ArrayBuffer.isView(body))
    throw new TypeError('A signature covers the bytes of the raw body: pass a Uint8Array.');
  const parts = header?.split(',') ?? [];
  const valuesOf = (name: string) =>
    parts.flatMap((part) => (part.startsWith(`${name}=`) ? [part.slice(name.length + 1)] : []));
  const [time = '', ...moreTimes] = valuesOf('t');
  // Not with `>`: without a number for the time or the tolerance, no signature is valid.
  const isRecent = Math.abs(nowS - Number(time)) <= toleranceS;
  if (moreTimes.length > 0 || !/^\d{1,12}$/.test(time) || !isRecent) return false;
  const signatures = valuesOf('v1').flatMap((hex) => (/^[0-9a-f]{64}$/.test(hex) ? [bytesOf(hex)] : []));
  const start = new TextEncoder().encode(`${time}.`);
  const signed = new Uint8Array(start.length + body.length);
  signed.set(start);
  signed.set(body, start.length);
  for (const secret of secrets) {
    // Once for each secret: a header that anybody sends may have hundreds of signatures.
    const expected = new Uint8Array(await crypto.subtle.sign('HMAC', await keyOf(secret), signed));
    if (signatures.some((signature) => areEqual(signature, expected))) return true;
  }
  return false;
}

function keyOf(secret: string): Promise<Key> {
  let key = keys.get(secret);
  if (key === undefined) {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    key = crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['sign']);
    if (keys.size >= MAX_KEYS) keys.clear();
    keys.set(secret, key);
  }
  return key;
}

/** Compares two arrays of the same length, and takes the same time wherever the first difference is. */
function areEqual(some: Uint8Array, others: Uint8Array): boolean {
  return some.reduce((difference, byte, i) => difference | (byte ^ (others[i] ?? 0)), 0) === 0;
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}
