/** The signature of a delivery: made by the worker, checked by receivers. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The tolerance that receivers are advised, in seconds. */
export const ADVISED_TOLERANCE_S = 300;

/**
 * The value of `Service-Signature` (specification 5, interface 5): `t=<unix seconds>,v1=<hex>`, with one `v1` for each secret in
 * the order given. Each is HMAC-SHA256 over `<t>.` and the body's bytes, keyed with the UTF-8 bytes of the whole secret.
 */
export function signatureHeader(secrets: readonly string[], timestampS: number, body: Uint8Array | string): string {
  let header = `t=${timestampS}`;
  for (const secret of secrets) header += `,v1=${sign(secret, timestampS, body).toString('hex')}`;
  return header;
}

/** The headers of a delivery (specification 2.3), signed as `signatureHeader` does. */
export function deliveryHeaders(
  delivery: { id: string; eventId: string; eventType: string },
  body: Uint8Array | string,
  secrets: readonly string[],
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

/** Whether a header is a signature over this body made with this secret, at most `toleranceS` seconds from `nowS`. */
export function verifySignature(check: {
  header: string;
  secret: string;
  body: Uint8Array | string;
  nowS: number;
  toleranceS?: number;
}): boolean {
  const parts = check.header.split(',').map((part) => /^(t|v1)=(.*)$/.exec(part));
  const times = parts.filter((part) => part?.[1] === 't');
  const timestampS = Number(times[0]?.[2]);
  if (times.length !== 1 || !/^\d{1,12}$/.test(times[0]![2]!)) return false;
  if (Math.abs(check.nowS - timestampS) > (check.toleranceS ?? ADVISED_TOLERANCE_S)) return false;
  const expected = sign(check.secret, timestampS, check.body);
  return parts.some((part) => {
    if (part?.[1] !== 'v1' || !/^[0-9a-f]{64}$/.test(part[2]!)) return false;
    return timingSafeEqual(Buffer.from(part[2]!, 'hex'), expected);
  });
}

function sign(secret: string, timestampS: number, body: Uint8Array | string): Buffer {
  return createHmac('sha256', secret).update(`${timestampS}.`).update(body).digest();
}
