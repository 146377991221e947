import { createHmac, timingSafeEqual } from 'node:crypto';

/** rawBody: the bytes as received. header: Service-Signature. Returns whether it is signed with the secret, at most 300 s from now. */
export function verify(rawBody, header, secret, now = Date.now() / 1000) {
  const parts = header.split(',').map((part) => part.split('='));
  const time = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!/^\d{1,12}$/.test(time) || Math.abs(now - Number(time)) > 300) return false;
  const expected = createHmac('sha256', secret).update(`${time}.`).update(rawBody).digest();
  return parts.some(([name, value]) => {
    const given = Buffer.from(value ?? '', 'hex');
    return name === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}
