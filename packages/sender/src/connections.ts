/** Keeps connections between requests: one undici client each, reused latest first, for a limited time. */
import type { Socket } from 'node:net';
import { ActiveList, atMost } from '@posthorn/core';
import { LRUCache } from 'lru-cache';
import { Client } from 'undici';
import type { Opening } from './connect.ts';
import type { OpeningSteps } from './opening-steps.ts';
import { MAX_HEADERS_BYTES, ResponseLimits } from './response-limits.ts';
import { ResponseError } from './result.ts';

/** A connection serves one request at a time. */
export interface Connection {
  readonly origin: string;
  readonly socket: Socket;
  readonly ip: string | null;
  readonly steps: OpeningSteps;
  readonly client: Client;
  readonly limits: ResponseLimits;
  readonly openedAtMs: number;
}

export type Connections = ReturnType<typeof createConnections>;

/** A connection is not used for longer than this, so that a name that moves to another IP is followed. */
const MAX_CONNECTION_AGE_MS = 60_000;
/**
 * Idle connections are closed after this time, or a second before the receiver would close them (its `Keep-Alive`
 * header).
 */
const MAX_IDLE_MS = 10_000;
const MAX_IDLE_PER_ORIGIN = 256;
const MAX_IDLE = 1_024;
/** How long connections to an origin are not kept after it has sent an unrequested response. */
const DISTRUST_MS = 600_000;
const MAX_DISTRUSTED = 1_000;

/** `now` is a monotonic clock in milliseconds. */
export function createConnections(now: () => number) {
  const open = new Set<Connection>();
  /** Idle connections, the one that has been idle longest first. */
  const idle = new ActiveList<Connection>();
  /**
   * An origin keeps its list, even if empty, while it has open connections: so requests do not change the Map
   * (core/active-list.ts).
   */
  const idleByOrigin = new Map<string, Connection[]>();
  const distrusted = new LRUCache<string, true>({
    ...atMost(MAX_DISTRUSTED),
    ttl: DISTRUST_MS,
    ttlResolution: 0,
    perf: { now },
  });

  const distrust = (origin: string) => void distrusted.set(origin, true);
  const isReusable = ({ origin, socket, openedAtMs }: Connection) =>
    !socket.destroyed &&
    socket.writable &&
    socket.writableLength === 0 &&
    now() - openedAtMs < MAX_CONNECTION_AGE_MS &&
    !distrusted.has(origin);
  const removeIdle = (connection: Connection) => {
    if (!idle.delete(connection)) return;
    const same = idleByOrigin.get(connection.origin) ?? [];
    same.splice(same.lastIndexOf(connection), 1);
  };
  const keep = (connection: Connection) => {
    const same = idleByOrigin.get(connection.origin) ?? [];
    if (same.length >= MAX_IDLE_PER_ORIGIN || !open.has(connection) || !isReusable(connection)) {
      connection.socket.destroy();
      return;
    }
    same.push(connection);
    idleByOrigin.set(connection.origin, same);
    idle.add(connection);
    const oldest = idle.size > MAX_IDLE ? idle.at(0) : undefined;
    if (!oldest) return;
    // Now, not when the socket has closed: more connections may become idle before that.
    removeIdle(oldest);
    oldest.socket.destroy();
  };

  return {
    /** Returns a kept connection that is ready for a request, if there is one. */
    take(origin: string): Connection | undefined {
      for (;;) {
        const connection = idleByOrigin.get(origin)?.at(-1);
        if (!connection) return undefined;
        removeIdle(connection);
        if (isReusable(connection)) return connection;
        connection.socket.destroy();
      }
    },
    /** Adds a connection over a socket that has just been opened. */
    add(origin: string, { socket, steps }: Pick<Opening, 'socket' | 'steps'>, ip: string | null): Connection {
      const connection: Connection = {
        origin,
        socket,
        ip,
        steps,
        client: clientOver(origin, socket),
        limits: new ResponseLimits(socket, () => distrust(origin)),
        openedAtMs: now(),
      };
      open.add(connection);
      socket.once('close', () => {
        open.delete(connection);
        removeIdle(connection);
        if (idleByOrigin.get(origin)?.length === 0) idleByOrigin.delete(origin);
      });
      return connection;
    },
    /** Keeps a connection whose response is complete, or closes it. */
    release(connection: Connection): void {
      connection.limits.end();
      // undici is still parsing: if more bytes follow the response, it destroys the socket.
      queueMicrotask(() => keep(connection));
    },
    /** Keeps no connections to an origin for some time, as after an unrequested response. */
    distrust,
    /** Closes all connections, in use or not. */
    close(): void {
      for (const { socket } of open) socket.destroy();
    },
  };
}

/** An undici client over one socket. It never opens another. */
function clientOver(origin: string, socket: Socket): Client {
  let isTaken = false;
  return new Client(origin, {
    connect: (_options, done) => {
      if (isTaken) return done(new ResponseError('CLOSED'), null);
      isTaken = true;
      queueMicrotask(() => done(null, socket));
    },
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADERS_BYTES,
    keepAliveTimeout: MAX_IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    keepAliveTimeoutThreshold: 1_000,
    // The time limit of an attempt is the sender's.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
