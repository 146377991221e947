import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * rawBody: the bytes as received. header: Service-Signature. Returns whether it is signed with the secret, at most 300
 * s from now.
 */
export function verify(rawBody, header, secret, now = Date.now() / 1000) {
  // With an empty secret, anybody could sign.
  if (!header || secret === '') return false;
  const parts = header.split(',');
  const times = parts.filter((part) => part.startsWith('t='));
  const time = times.length === 1 ? times[0].slice(2) : '';
  if (!/^\d{1,12}$/.test(time) || Math.abs(now - Number(time)) > 300) return false;
  const signature = createHmac('sha256', secret).update(`${time}.`).update(rawBody).digest('hex');
  const expected = Buffer.from(`v1=${signature}`);
  return parts.some((part) => {
    const given = Buffer.from(part);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
