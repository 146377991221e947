/** Code that verifies a delivery, for receivers to copy. */

export const nodeSnippet = `import { createHmac, timingSafeEqual } from 'node:crypto';

/** rawBody: the bytes as received. header: Service-Signature. */
export function verify(rawBody, header, secret) {
  const parts = header.split(',').map((part) => part.split('='));
  const time = parts.find(([name]) => name === 't')?.[1];
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= 300)) return false;
  const expected = createHmac('sha256', secret).update(\`\${time}.\`).update(rawBody).digest();
  return parts.some(([name, value]) => {
    const given = Buffer.from(value ?? '', 'hex');
    return name === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
}`;

export const pythonSnippet = `import hashlib, hmac, time

def verify(raw_body: bytes, header: str, secret: str) -> bool:
    """raw_body: the bytes as received. header: Service-Signature."""
    parts = [part.partition("=") for part in header.split(",")]
    t = next((value for name, _, value in parts if name == "t"), "")
    if not t.isdecimal() or abs(time.time() - int(t)) > 300:
        return False
    expected = hmac.new(secret.encode(), t.encode() + b"." + raw_body, hashlib.sha256).hexdigest()
    return any(
        name == "v1" and hmac.compare_digest(value.encode(), expected.encode())
        for name, _, value in parts
    )`;
