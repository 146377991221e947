/** An HTTP server: its time limits for slow clients, and a stop that finishes the requests in flight. */
import { once } from 'node:events';
import { createServer, IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { AppError, StartError, withPort } from '@posthorn/core';
import type { Service, SharedSettings } from '@posthorn/runtime';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Registry } from 'prom-client';
import { limitConnections, proxyTest } from './connection-limit.ts';
import { type Connections, handleInOrder, refuse } from './handle-in-order.ts';

/** Time limits for the headers of a request and for the whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval of checking these two limits: a connection may be closed this much late. */
const CHECK_CONNECTIONS_EVERY_MS = 1_000;
/** A connection without traffic is closed after this time. Longer than any call takes. */
const SOCKET_TIMEOUT_MS = 120_000;
/** A connection on which no request follows is closed after this time. */
const KEEP_ALIVE_MS = 65_000;
/**
 * The same for `TRUSTED_PROXIES`: longer than any common proxy keeps an idle connection (Envoy: an hour). Otherwise the
 * proxy may send a request just when the connection is closed, and its caller gets 502.
 */
const PROXY_KEEP_ALIVE_MS = 3_900_000;

/** Interval of closing unused connections while the server stops. */
const CLOSE_UNUSED_EVERY_MS = 50;
/**
 * Maximum number of connections that wait to be accepted, if the system allows that many. Others must retry after
 * seconds.
 */
const BACKLOG = 4_096;
/** Further connections are closed when they arrive. Each takes some kilobytes. */
export const MAX_CONNECTIONS = 10_000;

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
  app.use(requireOneHost, ignoreConditions);
  return app;
}

/**
 * Headers for parts and versions of files. Files here are small and sent whole; express would turn them into errors.
 */
const CONDITIONS = ['range', 'if-match', 'if-unmodified-since'] as const;
const ignoreConditions: RequestHandler = (request, _response, next) => {
  for (const name of CONDITIONS) if (request.headers[name] !== undefined) delete request.headers[name];
  next();
};

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

/**
 * Returns a listener for an express app. If a URL is not valid (`http://[`), responds with a problem document; express
 * itself would respond with a page in HTML.
 */
export function listenerOf(app: Express): RequestListener {
  return (request, response) => {
    const url = localUrl(request.url ?? '');
    if (url === undefined) {
      refuse(response, 'bad_request', 'The URL of the request is not valid.');
      return;
    }
    request.url = url;
    // An error came after the response had begun: the client must not take the response for complete.
    app(request as Request, response as Response, () => request.socket.destroy());
  };
}

/**
 * Returns the path and the query of a request's URL; undefined if it is not valid. Express would parse one with a host
 * or a fragment by `url.parse`, of which Node warns with a line that is not one of the log.
 */
function localUrl(url: string): string | undefined {
  const isLocal = url.startsWith('/');
  if (isLocal && !url.includes('#')) return url;
  const parsed = isLocal ? URL.parse(`http://host${url}`) : URL.parse(url, 'http://host');
  return parsed ? parsed.pathname + parsed.search : undefined;
}

/** The settings of an HTTP server. */
type HttpSettings = Pick<SharedSettings, 'HOST' | 'MAX_CLIENT_CONNECTIONS' | 'TRUSTED_PROXIES'>;

/** Serves an express app. Port 0 selects a free port. `listener` gets the requests in place of the app. */
export function createHttpService(
  app: Express,
  options: { port: number; settings: HttpSettings; registry: Registry; listener?: RequestListener | undefined },
): HttpService {
  const { port, settings, registry, listener = listenerOf(app) } = options;
  const { HOST: host } = settings;
  const server = createServer({
    IncomingMessage: withPrototype(IncomingMessage, app.request),
    ServerResponse: withPrototype(ServerResponse, app.response),
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_CONNECTIONS_EVERY_MS,
    // `requireOneHost` checks this and responds with a problem document.
    requireHostHeader: false,
  });
  server.timeout = SOCKET_TIMEOUT_MS;
  const connections = handleInOrder(server, listener);
  server.maxConnections = MAX_CONNECTIONS;
  const isProxy = proxyTest(settings.TRUSTED_PROXIES);
  limitConnections(server, { max: settings.MAX_CLIENT_CONNECTIONS, isProxy, registry });
  if (settings.TRUSTED_PROXIES.length > 0) keepForProxies(server, isProxy);
  let stopping: Promise<void> | undefined;
  server.prependListener('request', (_request, response) => {
    if (stopping) response.setHeader('Connection', 'close');
  });
  return {
    name: 'http',
    app,
    url: () => `http://${withPort(host, (server.address() as AddressInfo).port)}`,
    async start() {
      if (server.listening) return;
      server.listen({ host, port, backlog: BACKLOG });
      await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
        throw describeListenError(error, host, port);
      });
    },
    async stop(graceMs) {
      stopping ??= server.listening ? close(server, connections, graceMs) : Promise.resolve();
      await stopping;
    },
  };
}

/** Keeps idle connections of proxies for `PROXY_KEEP_ALIVE_MS`. */
function keepForProxies(server: Server, isProxy: (socket: Socket) => boolean): void {
  const ofProxies = new WeakSet<Socket>();
  server.on('connection', (socket) => {
    if (isProxy(socket)) ofProxies.add(socket);
  });
  server.prependListener('request', ({ socket }, response) => {
    // Node's own listener, which comes first, sets `keepAliveTimeout`.
    if (ofProxies.has(socket)) response.on('finish', () => socket.setTimeout(PROXY_KEEP_ALIVE_MS));
  });
}

/**
 * Returns a class like `base` whose objects have this prototype from the start. Otherwise express changes the prototype
 * of each request and response, and V8 is slower wherever such an object is used.
 */
function withPrototype<C extends typeof IncomingMessage | typeof ServerResponse>(base: C, prototype: object): C {
  function construct(...args: unknown[]): object {
    return Reflect.construct(base, args, construct);
  }
  construct.prototype = prototype;
  return construct as unknown as C;
}

/** Resolves once all connections are closed. Those with requests in flight are cut after `graceMs`. */
async function close(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  // Otherwise a connection without a request would delay the stop: one kept alive after its last response, or one that
  // has sent nothing or half a request line, which Node does not count as idle.
  const unused = setInterval(connections.closeUnused, CLOSE_UNUSED_EVERY_MS);
  connections.announceClose();
  // `server.close` calls this, which would reset connections on which a request has just been sent.
  server.closeIdleConnections = () => undefined;
  server.close();
  await once(server, 'close');
  clearInterval(unused);
  clearTimeout(cut);
}

/** What is wrong if the system refuses to listen, and which settings change it. */
const LISTEN_ERRORS: Record<string, string> = {
  EACCES: 'this user may not use this port. Set PORT or OPERATIONS_PORT to one above 1023.',
  EADDRNOTAVAIL: 'this machine does not have this IP. Set HOST.',
  EAFNOSUPPORT: 'this machine has no IPs of this kind. Set HOST.',
  EAI_AGAIN: 'the name could not be resolved. Set HOST to an IP.',
  ENOTFOUND: 'no such name. Set HOST to an IP.',
};

function describeListenError({ code = '', message }: NodeJS.ErrnoException, host: string, port: number): StartError {
  const address = withPort(host, port);
  if (code === 'EADDRINUSE') return new StartError(`${address} is already in use. Set PORT or OPERATIONS_PORT.`);
  const why = LISTEN_ERRORS[code] ?? `${message} (HOST, PORT, OPERATIONS_PORT)`;
  return new StartError(`Cannot listen on ${address}: ${why}`);
}
