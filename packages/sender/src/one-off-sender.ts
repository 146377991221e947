/**
 * Sends single requests (validations and notices), each over its own connection. Rules and limits are those of
 * deliveries, but a response counts only once all of its headers have arrived.
 */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Got, RequestFunction, Response } from 'got';
import { BodyExcerpt, cameBack } from './came-back.ts';
import { createCheckedUrls } from './checked-urls.ts';
import { IP_TIMEOUT_MS } from './connect.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { followOpening, type OpeningSteps } from './opening-steps.ts';
import {
  MAX_BODY_MS,
  MAX_CHUNKS,
  MAX_HEAD_BYTES,
  MAX_HEADERS_BYTES,
  MAX_INTERIM_RESPONSES,
} from './response-limits.ts';
import {
  ResponseError,
  resultOfError,
  type Sender,
  type SendOutcome,
  type SendRequest,
  type SendResult,
} from './result.ts';
import type { SenderOptions } from './sender.ts';
import { CIPHERS, limitTlsMessages } from './tls-limits.ts';

type Finish = (outcome: SendOutcome) => void;

/** A sender that keeps no connections: each request resolves the name again and checks all its IPs. */
export function createOneOffSender(options: SenderOptions): Sender {
  const agentOptions = {
    keepAlive: false,
    lookup: guardedLookup(options.allowedNetworks, options.resolve),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: IP_TIMEOUT_MS,
    // Otherwise Node 24 would use a proxy that the environment names.
    proxyEnv: {},
  };
  const agent = {
    http: followingAttempts(new HttpAgent(agentOptions)),
    https: followingAttempts(new HttpsAgent({ ...agentOptions, ca: options.ca, ciphers: CIPHERS })),
  };
  // Loaded when the first request is sent: a worker may never send one.
  const loadClient = async (): Promise<Got> => {
    const { default: got } = await import('got');
    return got.extend({
      agent,
      request,
      retry: { limit: 0 },
      followRedirect: false,
      throwHttpErrors: false,
      decompress: false,
      strictContentLength: false,
      maxHeaderSize: MAX_HEADERS_BYTES,
      https: { alpnProtocols: ['http/1.1'] },
      headers: { 'user-agent': options.userAgent },
    });
  };
  let client: Promise<Got> | undefined;
  const checkedUrlOf = createCheckedUrls(options.allowedNetworks);
  const inFlight = new Set<Finish>();
  options.signal?.addEventListener('abort', () => {
    for (const finish of inFlight) finish({ kind: 'aborted', ip: null });
  });
  return {
    async send(request) {
      if (options.signal?.aborted) return { kind: 'aborted', ip: null };
      const to = checkedUrlOf(request.url);
      if ('kind' in to) return to;
      client ??= loadClient().catch((error: unknown) => {
        // The next request tries again.
        client = undefined;
        throw error;
      });
      const loaded = await client;
      // The signal may have fired meanwhile.
      if (options.signal?.aborted) return { kind: 'aborted', ip: null };
      return await post(loaded, request, options.timeoutMs, inFlight);
    },
    close() {
      agent.http.destroy();
      agent.https.destroy();
    },
  };
}

/**
 * Makes a request and accepts headers that are not quite valid, as the sender of deliveries does: in several lines, or
 * with lines that end with LF alone. Nothing can hide in such a response, since its connection carries no other.
 */
const request: RequestFunction = (url, options, callback) =>
  (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, { ...options, insecureHTTPParser: true }, callback);

const openings = new WeakMap<Socket, OpeningSteps>();

/**
 * Makes an agent record how its sockets connect, and limits their TLS messages. Not done in the request, which gets its
 * socket only after the first try.
 */
function followingAttempts<T extends HttpAgent>(agent: T): T {
  const createConnection = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const socket = createConnection(options, callback) as Socket;
    openings.set(socket, followOpening(socket));
    limitTlsMessages(socket);
    return socket;
  };
  return agent;
}

/**
 * Makes one request, which ends with the final status, a failure, a limit or an abort. Its connection ends with it.
 * With `excerptBytes` it ends up to `MAX_BODY_MS` after the status, with the beginning of the body.
 */
function post(
  client: Got,
  { url, headers, body, excerptBytes = 0 }: SendRequest,
  timeoutMs: number,
  inFlight: Set<Finish>,
): Promise<SendResult> {
  return new Promise((resolve) => {
    const stream = client.stream.post(url, { headers, body });
    let socket: Socket | undefined;
    let sentAt = 0;
    let isConnected = false;
    let excerpt: BodyExcerpt | undefined;
    let firstByteMs: number | null = null;
    let responded: SendOutcome | undefined;
    const opening = () => socket && openings.get(socket);
    const ip = () => opening()?.ip ?? null;
    const finish: Finish = (ended) => {
      clearTimeout(timer);
      inFlight.delete(finish);
      const outcome = responded ?? ended;
      const known = { outcome, excerpt, opening: opening(), isReused: false, firstByteMs };
      resolve(excerptBytes > 0 ? { ...outcome, cameBack: () => cameBack(known) } : outcome);
      stream.destroy();
    };
    const timeOut = () => finish({ kind: 'timed_out', isConnected, ip: ip() });
    // `setImmediate`: what has arrived while the process was blocked is read first.
    let timer = setTimeout(() => setImmediate(timeOut), timeoutMs);
    inFlight.add(finish);
    const fail = (error: Error) => finish(resultOfError(error, ip()));
    stream.on('request', (request: ClientRequest) => {
      limitHead(request, fail);
      request.once('socket', (assigned) => {
        socket = assigned;
        sentAt = performance.now();
        // The request is written once the connection is open.
        assigned.once(url.startsWith('https:') ? 'secureConnect' : 'connect', () => {
          isConnected = true;
          sentAt = performance.now();
        });
      });
    });
    stream.on('response', ({ statusCode, headers: received }: Response) => {
      // Interim responses do not get here. What does is no status, such as 099.
      if (statusCode < 200) return fail(new ResponseError('INVALID_RESPONSE'));
      const outcome: SendOutcome = { kind: 'responded', statusCode, ip: ip() };
      if (excerptBytes === 0) return finish(outcome);
      responded = outcome;
      firstByteMs = Math.round(performance.now() - sentAt);
      const begun = new BodyExcerpt(received, excerptBytes);
      excerpt = begun;
      clearTimeout(timer);
      timer = setTimeout(() => finish(outcome), MAX_BODY_MS);
      stream.on('data', (chunk: Buffer) => {
        begun.add(chunk);
        if (begun.isFull()) finish(outcome);
      });
      stream.once('end', () => {
        begun.end();
        finish(outcome);
      });
    });
    stream.on('upgrade', (_response: unknown, upgraded: Socket) => {
      upgraded.destroy();
      fail(new ResponseError('UPGRADE'));
    });
    stream.on('error', fail);
  });
}

/** Bounds the interim responses of a request, the bytes before its final status, and the chunks. */
function limitHead(request: ClientRequest, fail: (error: Error) => void): void {
  let interim = 0;
  let chunks = 0;
  let hasStatus = false;
  request.once('response', () => {
    hasStatus = true;
  });
  request.on('information', () => {
    interim += 1;
    if (interim > MAX_INTERIM_RESPONSES) fail(new ResponseError('TOO_MANY_INTERIM_RESPONSES'));
  });
  request.once('socket', (socket) => {
    socket.on('data', () => {
      chunks += 1;
      if (chunks > MAX_CHUNKS) fail(new ResponseError('TOO_MANY_CHUNKS'));
      // The chunk that completes the head may have much of the body.
      if (!hasStatus && socket.bytesRead > MAX_HEAD_BYTES) fail(new ResponseError('RESPONSE_TOO_LARGE'));
    });
  });
}
