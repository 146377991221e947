/** Makes one attempt: a POST whose outcome is known with the status line, within one time limit for everything. */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import got, { type Got, type Request } from 'got';
import { type AllowedNetworks, checkUrl } from './guard.ts';
import { AddressBlocked, createResolver, guardedLookup, type Resolve } from './resolve.ts';

export interface SendRequest {
  url: string;
  headers: Record<string, string>;
  /** The exact text to send, as UTF-8. (A string, since got would copy a buffer several times.) */
  body: string;
}

/** How an attempt ended. A failed attempt is a value, never an exception. */
export type SendResult =
  | { kind: 'responded'; statusCode: number }
  | { kind: 'timed_out' }
  | { kind: 'connection_failed'; error: 'dns' | 'connection' | 'tls'; detail: string }
  | { kind: 'address_blocked'; reason: 'private_address' | 'local_address' }
  | { kind: 'aborted' };

export interface SenderOptions {
  allowedNetworks: AllowedNetworks;
  /** Limit for the response, counted from the start of the attempt (specification 8). */
  timeoutMs: number;
  userAgent: string;
  /** Resolves names; the system's resolver unless a test says otherwise. */
  resolve?: Resolve;
  /** Gives up all attempts in flight, and refuses new ones: the process can't wait any longer. */
  signal?: AbortSignal;
  /** Certificate authorities to trust in place of the well-known ones. */
  ca?: string;
}

export interface Sender {
  /** Makes one attempt. */
  send(request: SendRequest): Promise<SendResult>;
  /** Lets go of the connections that are kept. */
  close(): void;
}

type Agents = { http: HttpAgent; https: HttpsAgent };

/** What is read of a response's body at most, and for how long, so that its connection can be used again. */
const DRAIN_BYTES = 16 * 1024;
const DRAIN_MS = 250;
/** A response's status line and headers together. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Connections kept to one address while idle, and for how long. */
const IDLE_PER_ADDRESS = 256;
const IDLE_MS = 10_000;
/** Checked URLs remembered. */
const CHECKS_KEPT = 10_000;

export function createSender(options: SenderOptions): Sender {
  const agentOptions = {
    maxFreeSockets: IDLE_PER_ADDRESS,
    timeout: IDLE_MS,
    scheduling: 'lifo' as const,
    lookup: guardedLookup(options.allowedNetworks, options.resolve ?? createResolver()),
    // Without this, Node 24 could be told by the environment to use a proxy.
    proxyEnv: {},
  };
  const makeAgents = (keepAlive: boolean): Agents => ({
    http: new HttpAgent({ ...agentOptions, keepAlive }),
    https: new HttpsAgent({ ...agentOptions, keepAlive, ca: options.ca }),
  });
  const [kept, fresh] = [makeAgents(true), makeAgents(false)];
  // Whatever got would do beyond one plain request is off: most of an attempt's cost is in such features.
  const client = got.extend({
    agent: kept,
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
    strictContentLength: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    headers: { 'user-agent': options.userAgent },
  });
  // One listener for all: adding one to a signal for each attempt costs more than signing it.
  const inFlight = new Set<() => void>();
  options.signal?.addEventListener('abort', () => {
    for (const giveUp of inFlight) giveUp();
  });
  const check = rememberChecks(options.allowedNetworks);
  return {
    async send(request) {
      if (options.signal?.aborted) return { kind: 'aborted' };
      // An IP literal never reaches the lookup of a connection, so it is checked here.
      const blocked = check(request.url);
      if (blocked !== undefined) return blocked;
      const endsAtMs = performance.now() + options.timeoutMs;
      const result = await post(client, request, options.timeoutMs, inFlight);
      if (result !== 'stale') return result;
      // The receiver had closed a kept connection: most likely it saw nothing of the request, which goes once more over a new one.
      const again = await post(client, request, Math.max(1, endsAtMs - performance.now()), inFlight, fresh);
      return again === 'stale' ? { kind: 'connection_failed', error: 'connection', detail: 'ECONNRESET' } : again;
    },
    close() {
      for (const agents of [kept, fresh]) for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** What checkUrl says of a URL follows from its text, and the same few are sent to all day: it is worked out once for each. */
function rememberChecks(allowed: AllowedNetworks): (url: string) => SendResult | undefined {
  const known = new Map<string, SendResult | undefined>();
  return (url) => {
    if (known.has(url)) return known.get(url);
    const check = checkUrl(url, allowed);
    const result: SendResult | undefined = check.ok
      ? undefined
      : { kind: 'address_blocked', reason: check.reason === 'malformed' ? 'private_address' : check.reason };
    if (known.size >= CHECKS_KEPT) known.clear();
    known.set(url, result);
    return result;
  };
}

/** One request, settled by whichever comes first: the status line, a failure, the time limit, giving up. */
function post(
  client: Got,
  { url, headers, body }: SendRequest,
  limitMs: number,
  inFlight: Set<() => void>,
  agent?: Agents,
): Promise<SendResult | 'stale'> {
  return new Promise((resolve) => {
    const stream = client.stream.post(url, agent ? { headers, body, agent } : { headers, body });
    let native: ClientRequest | undefined;
    let settled = false;
    const settle = (result: SendResult | 'stale') => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      inFlight.delete(abort);
      resolve(result);
    };
    const giveUp = (result: SendResult) => {
      settle(result);
      stream.destroy();
    };
    const abort = () => giveUp({ kind: 'aborted' });
    const timer = setTimeout(giveUp, limitMs, { kind: 'timed_out' });
    inFlight.add(abort);
    stream.on('request', (request: ClientRequest) => {
      native = request;
    });
    stream.on('response', (response: IncomingMessage) => {
      settle({ kind: 'responded', statusCode: response.statusCode! });
      drain(stream);
    });
    stream.on('upgrade', (_response: IncomingMessage, socket: Socket) => {
      socket.destroy();
      giveUp({ kind: 'connection_failed', error: 'connection', detail: 'UPGRADE' });
    });
    stream.on('error', (error: NodeJS.ErrnoException) => {
      const result = classify(error);
      settle(native?.reusedSocket && STALE_CODES.has(error.code ?? '') ? 'stale' : result);
    });
  });
}

/** Reads what little body there may be, so that the connection can be kept; drops the connection where there is more. */
function drain(stream: Request): void {
  let bytes = 0;
  const timer = setTimeout(() => stream.destroy(), DRAIN_MS);
  const stop = () => clearTimeout(timer);
  stream.once('end', stop);
  stream.once('close', stop);
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DRAIN_BYTES) stream.destroy();
  });
}

const STALE_CODES = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const DNS_CODES = /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL|EREFUSED|ENONAME)/;
const TLS_CODES =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH|CRL_|ERROR_IN_C)/;

function classify(error: NodeJS.ErrnoException): SendResult {
  const cause = error.cause;
  if (cause instanceof AddressBlocked) return { kind: 'address_blocked', reason: cause.reason };
  const detail = error.code ?? 'UNKNOWN';
  if (DNS_CODES.test(detail)) return { kind: 'connection_failed', error: 'dns', detail };
  return { kind: 'connection_failed', error: TLS_CODES.test(detail) ? 'tls' : 'connection', detail };
}
