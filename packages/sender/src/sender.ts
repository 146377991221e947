/**
 * Sends deliveries: a POST whose outcome is known with the status line, over kept connections, within one time limit.
 */
import { isIP } from 'node:net';
import { ActiveList, errorOfStatus } from '@posthorn/core';
import type { Dispatcher } from 'undici';
import { BodyExcerpt, cameBack, type ResponseHeaders } from './came-back.ts';
import { type CheckedUrl, createCheckedUrls } from './checked-urls.ts';
import { type Connect, createConnect, type Opening } from './connect.ts';
import { type Connection, type Connections, createConnections } from './connections.ts';
import { type CostlyHandshakes, createCostlyHandshakes } from './costly-handshakes.ts';
import type { AllowedNetworks } from './guard.ts';
import { guardedLookup } from './guarded-lookup.ts';
import type { Resolve } from './resolve.ts';
import { MAX_BODY_BYTES, MAX_BODY_MS, MAX_HEADERS_MS } from './response-limits.ts';
import {
  ResponseError,
  resultOfError,
  type Sender,
  type SendOutcome,
  type SendRequest,
  type SendResult,
} from './result.ts';

export interface SenderOptions {
  allowedNetworks: AllowedNetworks;
  /** Limit for the response, counted from the start of the attempt (specification 8). */
  timeoutMs: number;
  userAgent: string;
  /** Resolves names: see `createResolver`. */
  resolve: Resolve;
  /** Aborts all attempts in flight, and refuses new ones. */
  signal?: AbortSignal | undefined;
  /** Certificate authorities to trust in place of the well-known ones. */
  ca?: string | undefined;
  /** Called for each new connection, once TCP has connected. */
  onConnected?: ((origin: string, ip: string) => void) | undefined;
  /** Clock for the age of connections, in milliseconds; monotonic. */
  now?: (() => number) | undefined;
  /** CPU time of this thread in milliseconds. */
  cpuNow?: (() => number) | undefined;
}

/**
 * If a kept connection ends this soon after a request was written, its receiver had closed it before: the end was on
 * its way, for as long as a slow network or a busy process takes.
 */
const CLOSED_BEFORE_MS = 2_000;

interface Context {
  connect: Connect;
  connections: Connections;
  handshakes: CostlyHandshakes;
  inFlight: ActiveList<Attempt>;
  userAgent: string;
  timeoutMs: number;
  now: () => number;
}

/** The sender of deliveries. It keeps connections for up to a minute. */
export function createSender(options: SenderOptions): Sender {
  const lookup = guardedLookup(options.allowedNetworks, options.resolve);
  const checkedUrlOf = createCheckedUrls(options.allowedNetworks);
  const now = options.now ?? (() => performance.now());
  const handshakes = createCostlyHandshakes(now, options.cpuNow);
  const context: Context = {
    connect: createConnect({ lookup, ca: options.ca, handshakes, onConnected: options.onConnected }),
    connections: createConnections(now),
    handshakes,
    inFlight: new ActiveList(),
    userAgent: options.userAgent,
    timeoutMs: options.timeoutMs,
    now,
  };
  // One listener for all attempts: adding one for each costs more than signing a delivery.
  options.signal?.addEventListener('abort', () => {
    for (const attempt of context.inFlight) attempt.abort();
  });
  return {
    async send(request) {
      if (options.signal?.aborted) return { kind: 'aborted', ip: null };
      const to = checkedUrlOf(request.url);
      if ('kind' in to) return to;
      return await new Promise((resolve) => new Attempt(context, to, request, resolve).start());
    },
    close: () => context.connections.close(),
  };
}

/**
 * One attempt: over a kept connection if there is one; over a new one if there is none or the receiver has closed it.
 */
class Attempt {
  readonly #context: Context;
  readonly #to: CheckedUrl;
  readonly #request: SendRequest;
  readonly #resolve: (result: SendResult) => void;
  readonly #limit: NodeJS.Timeout;
  #opening: Opening | undefined;
  #connection: Connection | undefined;
  #isReused = false;
  #isSettled = false;
  #sentAt: number | undefined;
  #firstByteMs: number | null = null;
  #excerpt: BodyExcerpt | undefined;
  #headersLimit: NodeJS.Timeout | undefined;
  #bodyLimit: NodeJS.Timeout | undefined;

  constructor(context: Context, to: CheckedUrl, request: SendRequest, resolve: (result: SendResult) => void) {
    this.#context = context;
    this.#to = to;
    this.#request = request;
    this.#resolve = resolve;
    // A turn of the event loop runs timers first. After a process stood still, `setImmediate` lets it read a response
    // that has long arrived before the attempt times out.
    this.#limit = setTimeout(() => setImmediate(() => this.#timeOut()), context.timeoutMs);
    context.inFlight.add(this);
  }

  start(): void {
    const kept = this.#context.connections.take(this.#to.origin);
    this.#isReused = kept !== undefined;
    const { admit } = this.#request;
    if (kept?.ip && admit && !admit(kept.ip)) {
      this.#context.connections.release(kept);
      this.#settle({ kind: 'not_admitted', ip: kept.ip });
      return;
    }
    // One turn of the event loop here and one in undici: what the receiver has sent or closed by now is seen before the
    // request is written.
    if (kept) setImmediate(() => this.#exchange(kept));
    else this.#connect();
  }

  /** Ends the attempt now. */
  abort(): void {
    this.#end(this.#statusIn(this.#connection) ?? { kind: 'aborted', ip: null });
  }

  #timeOut(): void {
    if (this.#isSettled) return;
    const timedOut = { kind: 'timed_out', isConnected: this.#connection !== undefined, ip: this.#ip() } as const;
    this.#end(this.#statusIn(this.#connection) ?? timedOut);
  }

  /** Ends the attempt with its connection. */
  #end(outcome: SendOutcome): void {
    this.#settle(outcome);
    this.#opening?.cancel();
    this.#connection?.socket.destroy();
  }

  /** Returns the outcome once the status line has arrived, whatever follows it: the status decides (interface 6.4). */
  #statusIn(connection: Connection | undefined): SendOutcome | undefined {
    const statusCode = connection?.limits.statusCode();
    return connection && statusCode ? { kind: 'responded', statusCode, ip: connection.ip } : undefined;
  }

  #ip(): string | null {
    return this.#connection?.ip ?? this.#opening?.ip() ?? null;
  }

  #settle(outcome: SendOutcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#limit);
    clearTimeout(this.#headersLimit);
    this.#context.inFlight.delete(this);
    this.#resolve(this.#request.excerptBytes ? { ...outcome, cameBack: this.#cameBack(outcome) } : outcome);
  }

  #cameBack(outcome: SendOutcome) {
    // What is known at the end of the attempt; the excerpt goes on growing while the body is read.
    const known = {
      outcome,
      excerpt: this.#excerpt,
      opening: this.#connection?.steps ?? this.#opening?.steps,
      isReused: this.#isReused,
      firstByteMs: this.#firstByteMs,
    };
    return () => cameBack(known);
  }

  #connect(): void {
    this.#isReused = false;
    this.#connection = undefined;
    const { hostname, isSecure } = this.#to;
    const { admit } = this.#request;
    // There is no lookup for an IP, so `connect` would not ask. After `refusal`, a handshake has to be tried.
    if (isIP(hostname) !== 0 && admit?.(hostname) === false) {
      this.#settle({ kind: 'not_admitted', ip: hostname });
      return;
    }
    const refusal = isSecure ? this.#context.handshakes.refusal(hostname) : undefined;
    if (refusal) {
      this.#settle(refusal);
      return;
    }
    const opening = this.#context.connect(this.#to, admit, (error) => {
      if (this.#isSettled) return;
      const ip = this.#ip();
      if (error) this.#end(resultOfError(error, ip));
      else this.#exchange(this.#context.connections.add(this.#to.origin, opening, ip));
    });
    this.#opening = opening;
  }

  #exchange(connection: Connection): void {
    if (this.#isSettled) {
      connection.socket.destroy();
      return;
    }
    this.#opening = undefined;
    this.#connection = connection;
    const { headers, body } = this.#request;
    const lines = ['User-Agent', this.#context.userAgent];
    for (const name in headers) lines.push(name, headers[name] ?? '');
    connection.client.dispatch(
      { method: 'POST', path: this.#to.path, headers: lines, body },
      new Exchange(this, connection),
    );
  }

  onStart(connection: Connection, controller: Dispatcher.DispatchController): void {
    if (this.#request.mayStart?.() === false) {
      this.#settle({ kind: 'aborted', ip: null });
      controller.abort(new ResponseError('CLOSED'));
      return;
    }
    this.#sentAt = this.#context.now();
    connection.limits.begin(this);
  }

  onBody(chunk: Uint8Array): void {
    this.#excerpt?.add(chunk);
  }

  onEnd(connection: Connection): void {
    this.#excerpt?.end();
    clearTimeout(this.#bodyLimit);
    this.#context.connections.release(connection);
  }

  onStatus(
    connection: Connection,
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: ResponseHeaders,
  ): void {
    clearTimeout(this.#headersLimit);
    // `ResponseLimits` drops interim responses. One that gets here has another form, or its status is none, such as
    // 099.
    if (statusCode < 200) {
      controller.abort(new ResponseError('INVALID_RESPONSE'));
      return;
    }
    // Some servers send a 408 on their own before they close an idle connection, so it need not be about this request.
    if (statusCode === 408 && this.#isReused && this.#sinceSentMs() < CLOSED_BEFORE_MS) {
      controller.abort(new ResponseError('CLOSED'));
      return;
    }
    connection.limits.statusSeen(this);
    this.#firstByteMs = Math.round(this.#sinceSentMs());
    const { excerptBytes } = this.#request;
    if (excerptBytes && errorOfStatus(statusCode) !== null) this.#excerpt = new BodyExcerpt(headers, excerptBytes);
    this.#settle({ kind: 'responded', statusCode, ip: connection.ip });
    // With an excerpt, `ResponseLimits` ends a long body once its beginning has arrived.
    if (!this.#excerpt && Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) connection.socket.destroy();
  }

  /** The time since the request was written; 0 if it was not. */
  #sinceSentMs(): number {
    return this.#sentAt === undefined ? 0 : this.#context.now() - this.#sentAt;
  }

  /** The status has decided the outcome (interface 6.4), so nobody waits for what drips after it. */
  onUnfinishedHeaders(): void {
    this.#headersLimit = setTimeout(() => this.#timeOut(), MAX_HEADERS_MS);
  }

  /** Most bodies arrive with the status, so only the others need a timer. */
  onUnfinished(): void {
    this.#bodyLimit = setTimeout(() => this.#connection?.socket.destroy(), MAX_BODY_MS);
  }

  onError(connection: Connection, error: Error): void {
    clearTimeout(this.#bodyLimit);
    connection.socket.destroy();
    if (this.#isSettled) return;
    const outcome = this.#statusIn(connection) ?? resultOfError(error, connection.ip);
    // The receiver had closed a kept connection while the request was on its way, and most likely saw nothing of it: it
    // is sent again over a new one. What ends later, it had time to work on.
    const isClosed = connection.limits.received() === 0 || (error instanceof ResponseError && error.code === 'CLOSED');
    // What is no response is most likely the rest of the one before, whose body was longer than it said.
    const isRest = outcome.kind === 'connection_failed' && outcome.detail === 'INVALID_RESPONSE';
    if (this.#isReused && isRest) this.#context.connections.distrust(this.#to.origin);
    const isSoon = this.#sinceSentMs() < CLOSED_BEFORE_MS;
    if (this.#isReused && isSoon && (isClosed || isRest)) this.#connect();
    else this.#end(outcome);
  }
}

/**
 * Receives undici's calls for an attempt over one connection. A class, so that an attempt does not make a function for
 * each of them.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #attempt: Attempt;
  readonly #connection: Connection;

  constructor(attempt: Attempt, connection: Connection) {
    this.#attempt = attempt;
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#attempt.onStart(this.#connection, controller);
  }

  onResponseStart(controller: Dispatcher.DispatchController, statusCode: number, headers: ResponseHeaders): void {
    this.#attempt.onStatus(this.#connection, controller, statusCode, headers);
  }

  /** How much is read is limited in response-limits.ts. */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#attempt.onBody(chunk);
  }

  onResponseEnd(): void {
    this.#attempt.onEnd(this.#connection);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#attempt.onError(this.#connection, error);
  }
}
