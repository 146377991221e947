/**
 * Handles the requests of each connection in order, limits what waits behind them, and answers what is not valid HTTP.
 */
import { IncomingMessage, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError, type ErrorCode, errorCodes } from '@posthorn/core';
import { problemDocument } from './problems.ts';

/**
 * Maximum number of pipelined requests that wait for an earlier request of their connection, over all connections. Each
 * takes some kilobytes. A connection that sends one more is closed. A client that waits for each response never has
 * any.
 */
const MAX_PIPELINED = 20_000;
/**
 * Maximum number of chunks of a connection that nobody reads: before their request is handled, or after its response.
 * Each takes more than a hundred bytes of memory, or a microsecond, however small it is.
 */
const MAX_UNREAD_CHUNKS = 1_000;

interface Connection {
  /** The request in progress. */
  current: { request: IncomingMessage; response: ServerResponse } | undefined;
  /** Handlers of pipelined requests, in order. */
  waiting: (() => void)[];
  /** Chunks that have arrived since a request was handled and that nobody reads. */
  unreadChunks: number;
  /** Closes the connection if the rest of its request does not arrive. */
  late: NodeJS.Timeout | undefined;
  /** What had arrived when `closeUnused` was last called. */
  bytesRead: number | undefined;
}

/** What a server needs for its stop. */
export interface Connections {
  /** Announces with the responses in progress that their connections will be closed. */
  announceClose(): void;
  /** Closes connections without a request in progress on which nothing has arrived since the last call. */
  closeUnused(): void;
}

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

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
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: ${PROBLEM_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Responds with a problem document to a request that is not handled, and closes the connection. */
export function refuse(response: ServerResponse, code: ErrorCode, message: string): void {
  response.writeHead(errorCodes[code].status, { Connection: 'close', 'Content-Type': PROBLEM_TYPE });
  response.end(problemText(code, message));
}

function problemText(code: ErrorCode, message: string): string {
  return JSON.stringify(problemDocument(new AppError(code, message)));
}

/**
 * Handles the requests of a connection one after the other, and reads no more from the connection while any wait.
 * Otherwise, a client that sends requests without waiting for responses could use all memory and block the event loop.
 * A request that times out only because this process does not read it yet gets the timeout of an idle connection more.
 * Returns the server's connections.
 */
export function handleInOrder(server: Server, listener: RequestListener): Connections {
  const connections = new Map<Duplex, Connection>();
  let totalWaiting = 0;
  server.on('connection', (socket) => {
    const connection: Connection = {
      current: undefined,
      waiting: [],
      unreadChunks: 0,
      late: undefined,
      bytesRead: undefined,
    };
    connections.set(socket, connection);
    lingerOnClose(socket, connection);
    // Node resumes a connection whenever the body of a request is read.
    socket.on('resume', () => {
      if (connection.waiting.length > 0) socket.pause();
    });
    socket.once('close', () => {
      totalWaiting -= connection.waiting.length;
      clearTimeout(connection.late);
      connections.delete(socket);
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    endBroken(socket, connections.get(socket), error.code ?? '', server.timeout),
  );
  // Node's own response would let any number of chunks follow.
  server.on('checkExpectation', (_request, response: ServerResponse) =>
    refuse(response, 'expectation_failed', 'Send `Expect: 100-continue`, or no such header.'),
  );
  server.on('request', (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (!connection || socket.destroyed) return;
    clearTimeout(connection.late);
    if (request.headers['transfer-encoding'] !== undefined) limitUnread(connection, request, response);
    const handle = () => {
      connection.current = { request, response };
      connection.unreadChunks = 0;
      // Not `once`, which costs a microsecond more: a response closes only once.
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
  return {
    announceClose() {
      for (const { current } of connections.values())
        if (current && !current.response.headersSent) current.response.setHeader('Connection', 'close');
    },
    closeUnused() {
      for (const [socket, connection] of connections) {
        if (connection.current || socket.writableLength > 0) continue;
        const { bytesRead } = socket as Socket;
        if (bytesRead === connection.bytesRead) socket.destroy();
        connection.bytesRead = bytesRead;
      }
    },
  };
}

/** Ends a connection after invalid HTTP or a timeout. `code` is the code of Node's error. */
function endBroken(socket: Duplex, connection: Connection | undefined, code: string, moreTimeMs: number): void {
  const current = connection?.current;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection && connection.waiting.length > 0) {
    // The rest of its request is late because this process does not read it. Allow more time, once.
    connection.late = setTimeout(() => socket.destroy(), moreTimeMs).unref();
  } else if (!socket.writable || current?.request.complete || current?.response.headersSent) {
    // The client would take anything written now for the response to an earlier request, or for a part of it.
    socket.destroy();
  } else {
    socket.end(RESPONSES_TO_CLIENT_ERRORS[code] ?? NOT_HTTP);
    socket.once('finish', () => socket.destroy());
  }
}

/**
 * Makes Node close a connection only after the rest of its request, if the response is sent before. Closing it with
 * unread bytes would reset it, and a client that is still sending would never see the response.
 */
function lingerOnClose(socket: Socket, connection: Connection): void {
  const close = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    const request = connection.current?.request;
    if (!request || request.complete) {
      close();
    } else {
      socket.end();
      request.once('end', close);
    }
  };
}

/**
 * Closes the connection if too many chunks of a request are not read. Node would keep or discard them without counting.
 */
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
  // Before Node's own listener, which discards the rest uncounted unless somebody reads it.
  response.prependListener('finish', () => {
    if (!request.complete) request.on('data', isAllowed);
  });
}
