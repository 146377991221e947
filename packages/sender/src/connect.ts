/** Opens the connections of deliveries: resolve, check, connect, TLS. */
import { isIP, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import { createSecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { atMost } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import type { CheckedUrl } from './checked-urls.ts';
import type { CostlyHandshakes, Handshake } from './costly-handshakes.ts';
import { followOpening, type OpeningSteps } from './opening-steps.ts';
import { IpRefused } from './result.ts';
import { CIPHERS, limitTlsMessages } from './tls-limits.ts';

export interface ConnectOptions {
  /** Resolves and checks: see guarded-lookup.ts. */
  lookup: LookupFunction;
  /** Certificate authorities to trust in place of the well-known ones. */
  ca?: string | undefined;
  handshakes: CostlyHandshakes;
  /** Called once TCP has connected, before TLS. */
  onConnected?: ((origin: string, ip: string) => void) | undefined;
}

/** A connection that is being opened. */
export interface Opening {
  socket: Socket;
  steps: OpeningSteps;
  /** The IP connected to, or tried last. */
  ip(): string | null;
  /** Closes it; `done` is called with an error unless it was. */
  cancel(): void;
}

/**
 * `admit` is called with the first IP that a name resolves to, before the connection, and once another one is connected
 * to, with that. A refusal fails with `IpRefused`. It is not called if the host is an IP.
 */
export type Connect = (
  to: CheckedUrl,
  admit: ((ip: string) => boolean) | undefined,
  done: (error: Error | null, socket: Socket) => void,
) => Opening;

/**
 * How long one IP of a name is tried before the next. Node drops the first try when it begins the next one, so this is
 * longer than a slow route takes, even if one packet is lost.
 */
export const IP_TIMEOUT_MS = 2_000;
interface Session {
  data: Buffer;
  /** The end of the certificate of its first handshake. */
  validToMs: number;
}

/** TLS sessions kept for a faster handshake. */
const MAX_SESSIONS = 1_000;
/** How long no session is offered to an origin after a handshake that was to resume one has failed. */
const NO_SESSION_MS = 600_000;

/**
 * Creates a function that opens connections. It tries all IPs of a name in turn, each for `IP_TIMEOUT_MS`, and calls
 * `done` once: after the TLS handshake, or with the error.
 */
export function createConnect({ lookup, ca, handshakes, onConnected }: ConnectOptions): Connect {
  const sessions = new LRUCache<string, Session>(atMost(MAX_SESSIONS));
  /** Origins to which none is offered: a broken server would end each handshake with a session, also with a new one. */
  const withoutSession = new LRUCache<string, true>({ ...atMost(MAX_SESSIONS), ttl: NO_SESSION_MS });
  const secureContext = createSecureContext({ ca, ciphers: CIPHERS });
  return (to, admit, done) => {
    const { hostname: host, port, origin } = to;
    let admittedIp: string | undefined;
    const isAdmitted = (ip: string) => {
      admittedIp = ip;
      return admit?.(ip) !== false;
    };
    const shared = {
      host,
      port,
      lookup: admit ? admitted(lookup, isAdmitted) : lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: IP_TIMEOUT_MS,
      noDelay: true,
    };
    const session = withoutSession.has(origin) ? undefined : unexpired(sessions.get(origin));
    const socket: Socket = to.isSecure
      ? tlsConnect({
          ...shared,
          servername: isIP(host) ? '' : host.replace(/\.$/, ''),
          ALPNProtocols: ['http/1.1'],
          session,
          secureContext,
        })
      : netConnect(shared);
    const steps = followOpening(socket);
    const ip = () => socket.remoteAddress ?? steps.ip;
    let handshake: Handshake | undefined;
    socket.once('connect', () => {
      const reached = socket.remoteAddress ?? admittedIp ?? '';
      onConnected?.(origin, reached);
      if (admittedIp !== undefined && reached !== admittedIp && !isAdmitted(reached)) {
        finish(new IpRefused({ kind: 'not_admitted', ip: reached }));
        socket.destroy();
      } else if (to.isSecure) {
        handshake = handshakes.begin(host, {
          abort: (error) => socket.destroy(error),
          hasCertificate: () => mayHaveCertificate(socket as TLSSocket),
        });
      }
    });
    if (to.isSecure) {
      limitTlsMessages(socket);
      let validToMs: number | undefined;
      (socket as TLSSocket).on('session', (data) => {
        validToMs ??= (socket as TLSSocket).getPeerX509Certificate()?.validToDate.getTime();
        if (validToMs !== undefined) sessions.set(origin, { data, validToMs });
      });
    }
    // Cleared once called: the listeners live as long as the connection, and `done` would keep the attempt in memory.
    let waiting: typeof done | undefined = done;
    const finish = (error: Error | null) => {
      const call = waiting;
      waiting = undefined;
      if (!call) return;
      if (handshake) {
        handshakes.end(handshake, error ? { error, ip: ip() } : undefined);
        if (error && session) withoutSession.set(origin, true);
      } else if (to.isSecure) handshakes.notBegun(host);
      call(error, socket);
    };
    socket.once(to.isSecure ? 'secureConnect' : 'connect', () => finish(null));
    // This listener stays: an error after the connection is closed must not end the process. A TLS alert after the
    // handshake does not destroy the socket; without `destroy`, the end of the stream that follows would hide it.
    socket.on('error', (error) => {
      finish(error);
      socket.destroy(error);
    });
    const close = () => {
      finish(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
      socket.destroy();
    };
    socket.once('close', close);
    return { socket, steps, ip, cancel: close };
  };
}

/** Whether certificates were verified, as far as a socket can say: one that is destroyed can't. */
function mayHaveCertificate(socket: TLSSocket): boolean {
  return socket.destroyed || Object.keys(socket.getPeerCertificate()).length > 0;
}

/** A handshake that resumes a session does not check the certificate again, and begins a new session. */
function unexpired(session: Session | undefined): Buffer | undefined {
  return session && Date.now() < session.validToMs ? session.data : undefined;
}

/** Adds `admit` to a lookup. It is called with the first IP of a name only, the one that is tried first. */
function admitted(lookup: LookupFunction, admit: (ip: string) => boolean): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      const ip = Array.isArray(found) ? found[0]?.address : found;
      if (!error && ip !== undefined && !admit(ip)) callback(new IpRefused({ kind: 'not_admitted', ip }), '');
      else callback(error, found, family);
    });
}
