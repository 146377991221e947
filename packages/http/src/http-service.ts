/** An HTTP server that limits slow and greedy clients, and that finishes requests in flight when it stops. */
import { once } from 'node:events';
import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError, type ErrorCode, errorCodes, StartError } from '@posthorn/core';
import type { Service, SharedSettings } from '@posthorn/runtime';
import express, { type Express, type RequestHandler } from 'express';
import type { Registry } from 'prom-client';
import { limitConnections } from './connection-limit.ts';
import { problemDocument } from './problems.ts';

/** Time limits for the headers of a request and for the whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval of checking these two limits: a connection may be closed this much late. */
const CHECK_CONNECTIONS_EVERY_MS = 1_000;
/** A connection without traffic is closed after this time. Longer than any call takes. */
const SOCKET_TIMEOUT_MS = 120_000;
/** Longer than that of common proxies, so that the proxy closes an idle connection first. */
const KEEP_ALIVE_MS = 65_000;

/** Interval of closing idle connections while the server stops. */
const CLOSE_IDLE_EVERY_MS = 50;
/** Maximum number of connections that wait to be accepted, if the system allows that many. Others must retry after seconds. */
const BACKLOG = 4_096;
/** Further connections are closed when they arrive. Each takes some kilobytes. */
const MAX_CONNECTIONS = 10_000;

/**
 * Maximum number of pipelined requests that wait for an earlier request of their connection, over all connections. Each takes some
 * kilobytes. A connection that sends one more is closed. A client that waits for each response never has any.
 */
const MAX_PIPELINED = 20_000;
/**
 * Maximum number of chunks of a connection that nobody reads: before their request is handled, or after its response.
 * Each takes more than a hundred bytes of memory, or a microsecond, however small it is.
 */
const MAX_UNREAD_CHUNKS = 1_000;

export interface HttpService extends Service {
  app: Express;
  /** Returns the address it listens on, for example `http://127.0.0.1:3000`. Throws before the start. */
  url(): string;
}

/** Creates an express app without routes. It trusts `X-Forwarded-*` of proxies in `trustedProxies` (CIDR). */
export function createExpress(trustedProxies: readonly string[] = []): Express {
  const app = express();
  if (trustedProxies.length > 0) app.set('trust proxy', [...trustedProxies]);
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(requireOneHost);
  return app;
}

/**
 * Refuses requests of HTTP/1.1 without a `Host` header, and those with two: a proxy may use the other one (RFC 9112,
 * section 3.2). Node silently uses the first.
 */
export const requireOneHost: RequestHandler = (request, response, next) => {
  const { rawHeaders } = request;
  let hosts = 0;
  // Names and values alternate. `headersDistinct` would copy all of them.
  for (let i = 0; i < rawHeaders.length; i += 2) if (isHost(rawHeaders[i])) hosts += 1;
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    response.set('Connection', 'close');
    throw new AppError('bad_request', `The request has ${hosts === 0 ? 'no' : 'more than one'} Host header.`);
  }
  next();
};

function isHost(name: string | undefined): boolean {
  return name?.length === 4 && name.toLowerCase() === 'host';
}

/** The settings of an HTTP server. */
export type HttpSettings = Pick<SharedSettings, 'HOST' | 'MAX_CLIENT_CONNECTIONS' | 'TRUSTED_PROXIES'>;

/** Serves an express app. Port 0 selects a free port. `listener` gets the requests in place of the app. */
export function createHttpService(
  app: Express,
  port: number,
  settings: HttpSettings,
  registry: Registry,
  listener: RequestListener = app,
): HttpService {
  const { HOST: host } = settings;
  const server = createServer({
    IncomingMessage: withPrototype(IncomingMessage, app.request),
    ServerResponse: withPrototype(ServerResponse, app.response),
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_CONNECTIONS_EVERY_MS,
    // `requireOneHost` does, with a problem document.
    requireHostHeader: false,
  });
  server.timeout = SOCKET_TIMEOUT_MS;
  handleInOrder(server, listener);
  server.maxConnections = MAX_CONNECTIONS;
  limitConnections(server, settings, registry);
  let stopping: Promise<void> | undefined;
  server.prependListener('request', (_request, response) => {
    if (stopping) response.setHeader('Connection', 'close');
  });
  return {
    name: 'http',
    app,
    url: () => `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
    async start() {
      if (server.listening) return;
      server.listen({ host, port, backlog: BACKLOG });
      await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
        throw describeListenError(error, host, port);
      });
    },
    async stop(graceMs) {
      stopping ??= server.listening ? close(server, graceMs) : Promise.resolve();
      await stopping;
    },
  };
}

/**
 * A class like `base` whose objects have this prototype from the start. Express gives it to each request and response;
 * an object whose prototype changes makes V8 slower wherever it is used.
 */
function withPrototype<C extends typeof IncomingMessage | typeof ServerResponse>(base: C, prototype: object): C {
  function construct(...args: unknown[]): object {
    return Reflect.construct(base, args, construct);
  }
  construct.prototype = prototype;
  return construct as unknown as C;
}

/** Resolves once all connections are closed. Those with requests in flight are cut after `graceMs`. */
async function close(server: Server, graceMs: number): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  // A keep-alive connection would delay the stop after its last response.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  server.close();
  await once(server, 'close');
  clearInterval(idle);
  clearTimeout(cut);
}

interface Connection {
  /** The request in progress. */
  current: { request: IncomingMessage; response: ServerResponse } | undefined;
  /** Handlers of pipelined requests, in order. */
  waiting: (() => void)[];
  /** Chunks that have arrived since a request was handled and that nobody reads. */
  unreadChunks: number;
  /** Closes the connection if the rest of its request does not arrive. */
  late: NodeJS.Timeout | undefined;
}

/** The response to each error of the HTTP parser. */
const RESPONSES_TO_CLIENT_ERRORS: Record<string, string> = {
  ERR_HTTP_REQUEST_TIMEOUT: closingResponse('request_timeout', 'The rest of the request did not arrive in time.'),
  HPE_HEADER_OVERFLOW: closingResponse('headers_too_large', 'The request line and headers have more than 16 KiB.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: closingResponse('body_too_large', 'The chunk extensions are too large.'),
};
/** The response to all others. */
const NOT_HTTP = closingResponse('bad_request', 'What came on this connection is not valid HTTP.');

/** A response with a problem document, as text, after which the connection is closed. */
function closingResponse(code: ErrorCode, message: string): string {
  const { status } = errorCodes[code];
  const body = problemText(code, message);
  const type = 'application/problem+json; charset=utf-8';
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function problemText(code: ErrorCode, message: string): string {
  return JSON.stringify(problemDocument(new AppError(code, message)));
}

/**
 * Handles the requests of a connection one after the other, and reads no more from the connection while any wait. Otherwise, a client
 * that sends requests without waiting for responses could use all memory and block the event loop.
 */
function handleInOrder(server: Server, listener: RequestListener): void {
  const connections = new WeakMap<Duplex, Connection>();
  let totalWaiting = 0;
  server.on('connection', (socket) => {
    const connection: Connection = { current: undefined, waiting: [], unreadChunks: 0, late: undefined };
    connections.set(socket, connection);
    // Node resumes a connection whenever the body of a request is read.
    socket.on('resume', () => {
      if (connection.waiting.length > 0) socket.pause();
    });
    socket.once('close', () => {
      totalWaiting -= connection.waiting.length;
      clearTimeout(connection.late);
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    endBroken(socket, connections.get(socket), error.code ?? ''),
  );
  // Node's own response would let any number of chunks follow.
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    response.writeHead(417, { Connection: 'close', 'Content-Type': 'application/problem+json; charset=utf-8' });
    response.end(problemText('expectation_failed', 'Send `Expect: 100-continue`, or no such header.'));
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (!connection || socket.destroyed) return;
    clearTimeout(connection.late);
    if (request.headers['transfer-encoding'] !== undefined) limitUnread(connection, request, response);
    const handle = () => {
      connection.current = { request, response };
      connection.unreadChunks = 0;
      // Not `once`, which costs a microsecond: it closes once anyway.
      response.on('close', next);
      listener(request, response);
    };
    const next = () => {
      connection.current = undefined;
      if (socket.destroyed) return;
      const following = connection.waiting.shift();
      if (!following) return;
      totalWaiting -= 1;
      following();
      if (connection.waiting.length === 0) socket.resume();
    };
    if (!connection.current) {
      handle();
    } else if (totalWaiting === MAX_PIPELINED) {
      socket.destroy();
    } else {
      totalWaiting += 1;
      connection.waiting.push(handle);
      socket.pause();
    }
  });
}

/** Ends a connection on which something came that is no HTTP, or that came too late; `code` is that of the error. */
function endBroken(socket: Duplex, connection: Connection | undefined, code: string): void {
  const current = connection?.current;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection && connection.waiting.length > 0) {
    // The rest of its request is late because this process does not read it. Allow more time, once.
    connection.late = setTimeout(() => socket.destroy(), SOCKET_TIMEOUT_MS).unref();
  } else if (!socket.writable || current?.request.complete || current?.response.headersSent) {
    // The client would take anything written now for the response to an earlier request, or for a part of it.
    socket.destroy();
  } else {
    socket.end(RESPONSES_TO_CLIENT_ERRORS[code] ?? NOT_HTTP);
    socket.once('finish', () => socket.destroy());
  }
}

/** Closes the connection if too many chunks of a request are not read. Node would keep or discard them without counting. */
function limitUnread(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
  const isAllowed = () => {
    connection.unreadChunks += 1;
    if (connection.unreadChunks <= MAX_UNREAD_CHUNKS) return true;
    request.socket.destroy();
    return false;
  };
  request.push = (chunk: unknown) => {
    const isKept = chunk === null || request.readableFlowing === true || isAllowed();
    return isKept && IncomingMessage.prototype.push.call(request, chunk);
  };
  // Before Node's own listener, which then leaves the rest to this one.
  response.prependListener('finish', () => {
    if (!request.complete) request.on('data', isAllowed);
  });
}

function describeListenError(error: NodeJS.ErrnoException, host: string, port: number): StartError {
  const address = `${host}:${port}`;
  if (error.code === 'EADDRINUSE') return new StartError(`${address} is already in use. Set PORT or OPERATIONS_PORT.`);
  return new StartError(`Cannot listen on ${address} (HOST, PORT, OPERATIONS_PORT): ${error.code ?? error.message}`);
}
