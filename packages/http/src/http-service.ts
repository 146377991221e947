/** An HTTP server with a life: listens, and on stop finishes what it has begun to answer. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError, StartError } from '@posthorn/core';
import type { Service } from '@posthorn/runtime';
import express, { type Express, type RequestHandler } from 'express';
import { type ConnectionLimits, limitConnections } from './connection-limit.ts';

/** A client gets this long for its headers, and for its whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How often those two are checked: a connection is closed at most this much late. */
const CHECK_CONNECTIONS_EVERY_MS = 1_000;
/** A connection on which nothing moves is closed: its client reads no response. Longer than any call takes. */
const SOCKET_TIMEOUT_MS = 120_000;
/** Longer than the usual proxy's, so that the proxy is the one to close an idle connection. */
const KEEP_ALIVE_MS = 65_000;

/** While stopping. */
const CLOSE_IDLE_EVERY_MS = 50;
/** Connections that wait to be accepted, if the system allows that many: those beyond have to try again after seconds. */
const BACKLOG = 4_096;
/** Connections at once; more are closed as they come. Each takes some kilobytes. */
const MAX_CONNECTIONS = 10_000;

/**
 * Requests that wait for their turn behind another of their connection, over all connections. Each takes some kilobytes; a connection
 * that sends one more is closed. A client that waits for its answers never has any here.
 */
const MOST_SENT_AHEAD = 20_000;

export interface HttpService extends Service {
  /** What it serves. */
  app: Express;
  /** Where it listens once it has started, for example `http://127.0.0.1:3000`. */
  url(): string;
}

/** A bare express app as both APIs want it. `trustedProxies` are the CIDRs of proxies whose `X-Forwarded-*` it believes. */
export function createExpress(trustedProxies: readonly string[] = []): Express {
  const app = express();
  if (trustedProxies.length > 0) app.set('trust proxy', [...trustedProxies]);
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(requireOneHost);
  return app;
}

/** Two `Host` headers may mean one thing to a proxy and another to us (RFC 9112, section 3.2). Node keeps the first in silence. */
const requireOneHost: RequestHandler = (request, response, next) => {
  let hosts = 0;
  for (let i = 0; i < request.rawHeaders.length; i += 2) if (/^host$/i.test(request.rawHeaders[i]!)) hosts += 1;
  if (hosts > 1) {
    response.set('Connection', 'close');
    next(new AppError('bad_request', 'The request has more than one Host header.'));
    return;
  }
  next();
};

/** Serves an express app. Port 0 takes a free one. */
export function createHttpService(options: {
  app: Express;
  host: string;
  port: number;
  limits: ConnectionLimits;
}): HttpService {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_CONNECTIONS_EVERY_MS,
  });
  server.timeout = SOCKET_TIMEOUT_MS;
  answerInTurn(server, options.app);
  server.maxConnections = MAX_CONNECTIONS;
  limitConnections(server, options.limits);
  let stopping: Promise<void> | undefined;
  server.prependListener('request', (_request, response) => {
    if (stopping) response.setHeader('Connection', 'close');
  });
  return {
    name: 'http',
    app: options.app,
    url() {
      const { port } = server.address() as AddressInfo;
      return `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
    },
    async start() {
      if (server.listening) return;
      await new Promise<void>((resolve, reject) => {
        const fail = (error: NodeJS.ErrnoException) => reject(describeListenError(error, options.host, options.port));
        server.once('error', fail);
        server.listen({ port: options.port, host: options.host, backlog: BACKLOG }, () => {
          server.off('error', fail);
          resolve();
        });
      });
    },
    async stop(graceMs) {
      stopping ??= new Promise<void>((resolve) => {
        if (!server.listening) {
          resolve();
          return;
        }
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        // A client that keeps its connection would hold up the stop once it has its answer.
        const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
        server.close(() => {
          clearInterval(idle);
          clearTimeout(cut);
          resolve();
        });
      });
      await stopping;
    },
  };
}

interface Connection {
  /** The request that is being answered. */
  current: { request: IncomingMessage; response: ServerResponse } | undefined;
  /** Requests that wait for their turn. */
  behind: (() => void)[];
  /** Ends the connection if the rest of its request still does not come. */
  late: NodeJS.Timeout | undefined;
}

/** What a client is told whose bytes are not a request that can be taken; any other error is 400. */
const STATUS_OF_CLIENT_ERROR: Record<string, string> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
};

/**
 * Answers the requests of a connection one after the other, and reads no more from it while some wait: whoever sends without waiting for
 * answers would have all of memory, and all time of the event loop, otherwise.
 */
function answerInTurn(server: Server, app: RequestListener): void {
  const connections = new WeakMap<Duplex, Connection>();
  let waiting = 0;
  server.on('connection', (socket) => {
    const connection: Connection = { current: undefined, behind: [], late: undefined };
    connections.set(socket, connection);
    // Node sets a connection going again whenever somebody reads the body of a request.
    socket.on('resume', () => {
      if (connection.behind.length > 0) socket.pause();
    });
    socket.once('close', () => {
      waiting -= connection.behind.length;
      clearTimeout(connection.late);
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const connection = connections.get(socket);
    const current = connection?.current;
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection && connection.behind.length > 0) {
      // The rest of its request is late because this process does not read it. It gets more time, once.
      connection.late = setTimeout(() => socket.destroy(), SOCKET_TIMEOUT_MS).unref();
    } else if (!socket.writable || current?.request.complete || current?.response.headersSent) {
      // What was written now would be taken for the response to an earlier request, or for a part of one.
      socket.destroy();
    } else {
      socket.end(
        `HTTP/1.1 ${STATUS_OF_CLIENT_ERROR[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`,
      );
      socket.once('finish', () => socket.destroy());
    }
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const connection = connections.get(socket)!;
    clearTimeout(connection.late);
    const answer = () => {
      connection.current = { request, response };
      response.once('close', next);
      app(request, response);
    };
    const next = () => {
      connection.current = undefined;
      if (socket.destroyed) return;
      const following = connection.behind.shift();
      if (!following) return;
      waiting -= 1;
      following();
      if (connection.behind.length === 0) socket.resume();
    };
    if (!connection.current) {
      answer();
    } else if (waiting === MOST_SENT_AHEAD) {
      socket.destroy();
    } else {
      waiting += 1;
      connection.behind.push(answer);
      socket.pause();
    }
  });
}

function describeListenError(error: NodeJS.ErrnoException, host: string, port: number): StartError {
  if (error.code === 'EADDRINUSE')
    return new StartError(`Something else listens on ${host}:${port} already. Set PORT.`);
  return new StartError(`Can't listen on ${host}:${port} (HOST, PORT): ${error.code ?? error.message}`);
}
