/** Verifies a delivery's signature as its receiver does: with the package for receivers. */
import { verifySignature } from '@posthorn/receiver';

export function isSigned({ secret, body, ...check }: { header: string; secret: string; body: string; nowS: number }) {
  return verifySignature({ ...check, secrets: [secret], body: new TextEncoder().encode(body) });
}
