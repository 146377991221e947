/** Records how a connection is opened: the IP, how long each step takes, and the certificate of the other side. */
import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { type AttemptConnection, plainLine } from '@posthorn/core';

/** Characters that are kept of a name in a certificate. */
const MAX_NAME_CHARS = 256;

/**
 * Filled while the socket connects. Durations are in milliseconds; null for a step that was not made or has not ended.
 */
export interface OpeningSteps {
  /** The IP connected to, or tried last. */
  ip: string | null;
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  certificate: AttemptConnection['certificate'];
}

/** Follows a socket that has just begun to connect. */
export function followOpening(socket: Socket): OpeningSteps {
  const steps: OpeningSteps = { ip: null, dnsMs: null, connectMs: null, tlsMs: null, certificate: null };
  let stepBegan = performance.now();
  const endStep = () => {
    const began = stepBegan;
    stepBegan = performance.now();
    return Math.round(stepBegan - began);
  };
  // Not emitted if the host is an IP.
  socket.once('lookup', () => {
    steps.dnsMs = endStep();
  });
  socket.on('connectionAttempt', (ip: string) => {
    steps.ip = ip;
  });
  socket.once('connect', () => {
    steps.connectMs = endStep();
  });
  // The first listener: the certificate can no longer be read once Node has refused it. Not `getPeerX509Certificate`,
  // after which Node's own check of the names finds none in the certificate.
  socket.prependOnceListener('secure', () => {
    steps.tlsMs = endStep();
    steps.certificate = certificateOf((socket as TLSSocket).getPeerCertificate());
  });
  return steps;
}

/** Null if the other side sent none, or one with a date that can't be read. */
function certificateOf({ subject, issuer, valid_to: validTo }: Partial<PeerCertificate>): OpeningSteps['certificate'] {
  const validToMs = Date.parse(validTo ?? '');
  return subject && issuer && !Number.isNaN(validToMs)
    ? { subject: nameOf(subject), issuer: nameOf(issuer), validToMs }
    : null;
}

/** The parts of a name in one line, such as `O=Example, CN=example.com`. */
function nameOf(name: PeerCertificate['subject']): string {
  const parts = Object.entries(name).map(([part, value]) => `${part}=${String(value)}`);
  return plainLine(parts.join(', '), MAX_NAME_CHARS);
}
