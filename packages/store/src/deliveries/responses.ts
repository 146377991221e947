/** Keeps what came back from failed attempts, apart from the deliveries: most deliveries have none. */
import { type AttemptConnection, type CameBack, DAY_MS } from '@posthorn/core';
import { decodeNamed, readNamed } from '../decode-named.ts';
import { prefixOfId, responsesKey } from '../keys.ts';
import type { Store } from '../store.ts';

/** How long responses are kept after the delivery succeeded: so short that they hardly add to its memory. */
export const RESPONSES_AFTER_SUCCESS_MS = DAY_MS;

/** The kept responses to a delivery's attempts, by the number of the attempt. */
export async function loadResponses(store: Store, deliveryId: string): Promise<Map<number, CameBack>> {
  const key = responsesKey(prefixOfId(store, deliveryId), deliveryId);
  const found = await readNamed('the responses to', deliveryId, store.redis.hgetall(key));
  const decode = (text: string) => decodeNamed('the responses to', deliveryId, () => decodeCameBack(text));
  return new Map(Object.entries(found).map(([number, text]) => [Number(number), decode(text)]));
}

/** A few short names: header values and the body are most of the text. Steps that were not made are left out. */
interface Encoded {
  /** Headers, body, whether the body is truncated. */
  r?: [Record<string, string>, string, 0 | 1];
  c?: {
    ip?: string;
    /** The connection was reused. */
    u?: 1;
    /** DNS, connect, TLS, first byte. */
    t?: (number | null)[];
    e?: string;
    /** Certificate: subject, issuer, end of its validity. */
    x?: [string, string, number];
  };
}

export function encodeCameBack({ response, connection }: CameBack): string {
  const encoded: Encoded = {};
  if (response) encoded.r = [response.headers, response.body, response.isBodyTruncated ? 1 : 0];
  if (connection) encoded.c = encodeConnection(connection);
  return JSON.stringify(encoded);
}

function encodeConnection(connection: AttemptConnection): NonNullable<Encoded['c']> {
  const { ip, isReused, dnsMs, connectMs, tlsMs, firstByteMs, errorCode, certificate } = connection;
  const timings = [dnsMs, connectMs, tlsMs, firstByteMs];
  return {
    ...(ip !== null && { ip }),
    ...(isReused && { u: 1 }),
    ...(timings.some((ms) => ms !== null) && { t: timings }),
    ...(errorCode !== null && { e: errorCode }),
    ...(certificate && { x: [certificate.subject, certificate.issuer, certificate.validToMs] }),
  };
}

export function decodeCameBack(text: string): CameBack {
  const { r, c } = JSON.parse(text) as Encoded;
  const [dnsMs = null, connectMs = null, tlsMs = null, firstByteMs = null] = c?.t ?? [];
  return {
    response: r ? { headers: r[0], body: r[1], isBodyTruncated: r[2] === 1 } : null,
    connection: c
      ? {
          ip: c.ip ?? null,
          isReused: c.u === 1,
          dnsMs,
          connectMs,
          tlsMs,
          firstByteMs,
          errorCode: c.e ?? null,
          certificate: c.x ? { subject: c.x[0], issuer: c.x[1], validToMs: c.x[2] } : null,
        }
      : null,
  };
}
