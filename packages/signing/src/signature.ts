/** Signs deliveries, and reads signatures that receivers saw, for the signature doctor. */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';

/** The tolerance that receivers are advised to allow, in seconds. */
export const ADVISED_TOLERANCE_S = 300;

/**
 * Returns the value of `Service-Signature` (specification 5, interface 5): `t=<unix seconds>,v1=<hex>`, with one `v1`
 * for each secret in the order given. Each is HMAC-SHA256 over `<t>.` and the body's bytes, keyed with the UTF-8 bytes
 * of the whole secret (or a key made of them, for one that is used often).
 */
export function signatureHeader(
  secrets: readonly (string | KeyObject)[],
  timestampS: number,
  body: Uint8Array | string,
): string {
  let header = `t=${timestampS}`;
  for (const secret of secrets) header += `,v1=${hmac(secret, timestampS, body).digest('hex')}`;
  return header;
}

/** Returns the headers of a delivery (specification 2.3), signed as `signatureHeader` does. */
export function deliveryHeaders(
  delivery: { id: string; eventId: string; eventType: string },
  body: Uint8Array | string,
  secrets: readonly (string | KeyObject)[],
  timestampS: number,
): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'Service-Signature': signatureHeader(secrets, timestampS, body),
    'Service-Event': delivery.eventType,
    'Service-Event-Id': delivery.eventId,
    'Service-Delivery-Id': delivery.id,
  };
}

/** What a signature header holds: its time, and its well-formed signatures of scheme `v1`. */
export interface SignatureHeader {
  timestampS: number;
  signatures: Buffer[];
}

/**
 * Returns undefined for a header without exactly one time of 1 to 12 digits. Ignores other schemes and malformed
 * signatures.
 */
export function parseSignatureHeader(header: string): SignatureHeader | undefined {
  const parts = header.split(',');
  const valuesOf = (name: string) =>
    parts.flatMap((part) => (part.startsWith(`${name}=`) ? part.slice(name.length + 1) : []));
  const [time = '', ...moreTimes] = valuesOf('t');
  if (moreTimes.length > 0 || !/^\d{1,12}$/.test(time)) return undefined;
  const wellFormed = valuesOf('v1').filter((hex) => /^[0-9a-f]{64}$/.test(hex));
  return { timestampS: Number(time), signatures: wellFormed.map((hex) => Buffer.from(hex, 'hex')) };
}

/** Returns whether one of the header's signatures was made with this secret over this body, whenever that was. */
export function isSignedWith(header: SignatureHeader, secret: string, body: Uint8Array | string): boolean {
  const expected = hmac(secret, header.timestampS, body).digest();
  return header.signatures.some((signature) => timingSafeEqual(signature, expected));
}

function hmac(secret: string | KeyObject, timestampS: number, body: Uint8Array | string) {
  return createHmac('sha256', secret).update(`${timestampS}.`).update(body);
}
