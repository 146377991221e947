/**
 * The limits of a response: how much of it is read, in how many chunks, and how many interim responses (1xx) may come
 * before it.
 */
import type { Socket } from 'node:net';
import { MAX_RESPONSE_EXCERPT_BYTES } from '@posthorn/core';
import { ResponseError } from './result.ts';

/** Everything up to the end of the final response's headers, interim responses included. */
export const MAX_HEAD_BYTES = 32 * 1024;
/** The final response's headers alone. */
export const MAX_HEADERS_BYTES = 16 * 1024;
export const MAX_INTERIM_RESPONSES = 16;
/** Reads of a response: over TLS each record is one, also one with a single byte. */
export const MAX_CHUNKS = 1_000;
/** How much of a body is read, and for how long, so that its connection can be used again. */
export const MAX_BODY_BYTES = MAX_RESPONSE_EXCERPT_BYTES;
export const MAX_BODY_MS = 250;

/** How long the headers after a status line may take: the status has decided, and they only say what came back. */
export const MAX_HEADERS_MS = 1_000;

/** Is called once, when all that has arrived of a response was parsed and the response is not complete. */
export interface Unfinished {
  onUnfinished(): void;
}

/** Is called once, when the final status line has arrived and the headers after it are not complete. */
interface UnfinishedHeaders {
  onUnfinishedHeaders(): void;
}

const NOTHING = Buffer.alloc(0);
/** The end of a head: lines may end with LF alone (RFC 9112, 2.2). */
const END_OF_HEAD = /\n\r?\n/;
/** Enough bytes to distinguish an interim response from a final one, and from a status of four digits. */
const STATUS_BYTES = 'HTTP/1.1 100 '.length;
const STATUS_LINE = /^HTTP\/1\.[01] ([2-9]\d\d)(?: [^\r\n]*)?\r?\n/;
const LF = 10;

/**
 * Limits what undici reads from a socket. Interim responses are dropped here, since undici fails a request at an
 * unrequested 100, which HTTP allows (RFC 9110, 15.2). A response that exceeds a limit destroys the socket. So do bytes
 * that arrive while no request is in flight; `onUnrequested` is called then.
 */
export class ResponseLimits {
  readonly #socket: Socket;
  readonly #onUnrequested: () => void;
  #phase: 'idle' | 'interim' | 'final' = 'idle';
  #received = 0;
  #chunks = 0;
  #allowed = 0;
  #interim = 0;
  #held: Buffer = NOTHING;
  /** How the final response begins, at least up to the end of its status line. */
  #start: Buffer = NOTHING;
  #headers: UnfinishedHeaders | undefined;
  #rest: Unfinished | undefined;

  constructor(socket: Socket, onUnrequested: () => void) {
    this.#socket = socket;
    this.#onUnrequested = onUnrequested;
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      for (;;) {
        const chunk = read(size) as Buffer | null;
        if (chunk === null) {
          this.#rest?.onUnfinished();
          this.#rest = undefined;
          if (this.#headers && this.statusCode() > 0) {
            this.#headers.onUnfinishedHeaders();
            this.#headers = undefined;
          }
          return null;
        }
        const accepted = this.#accept(chunk);
        if (accepted === undefined) return null;
        if (accepted.length > 0) return accepted;
      }
    };
  }

  /** A request is being written: bytes that arrive from now on are its response. */
  begin(headers: UnfinishedHeaders): void {
    this.#phase = 'interim';
    this.#allowed = MAX_HEAD_BYTES;
    this.#headers = headers;
  }

  /**
   * The final status has arrived: of what follows, `MAX_BODY_BYTES` are read. `unfinished` is called if the rest of
   * the response is not there yet.
   */
  statusSeen(unfinished: Unfinished): void {
    this.#allowed = this.#received + MAX_BODY_BYTES;
    this.#headers = undefined;
    this.#rest = unfinished;
  }

  /** The response is complete: bytes that arrive from now on were not requested. */
  end(): void {
    this.#phase = 'idle';
    this.#start = NOTHING;
    this.#headers = undefined;
    this.#rest = undefined;
    this.#received = 0;
    this.#chunks = 0;
    this.#interim = 0;
  }

  /** Returns the status of the current response once its status line has arrived, whatever follows it; 0 before. */
  statusCode(): number {
    return Number(STATUS_LINE.exec(this.#start.toString('latin1'))?.[1] ?? 0);
  }

  /** Returns how many bytes of the current response have arrived. */
  received(): number {
    return this.#received;
  }

  /** Returns the bytes that undici may parse after a chunk has arrived, or undefined after a failure. */
  #accept(chunk: Buffer): Buffer | undefined {
    if (this.#phase === 'idle') {
      this.#onUnrequested();
      return this.#fail(new ResponseError('UNREQUESTED_RESPONSE'));
    }
    if (this.#received > this.#allowed) return this.#fail(new ResponseError('RESPONSE_TOO_LARGE'));
    this.#received += chunk.length;
    this.#chunks += 1;
    if (this.#chunks > MAX_CHUNKS) return this.#fail(new ResponseError('TOO_MANY_CHUNKS'));
    if (this.#phase === 'interim') return this.#dropInterim(chunk);
    if (!this.#start.includes(LF)) this.#start = Buffer.concat([this.#start, chunk]);
    return chunk;
  }

  /**
   * Drops interim responses. Returns the final response from its beginning, no bytes before, or undefined after a
   * failure.
   */
  #dropInterim(chunk: Buffer): Buffer | undefined {
    let held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    for (;;) {
      const isInterim = startsInterim(held);
      if (isInterim === false) break;
      const end = isInterim ? endOfHead(held) : -1;
      if (end === -1) {
        this.#held = held;
        return NOTHING;
      }
      this.#interim += 1;
      if (this.#interim > MAX_INTERIM_RESPONSES) return this.#fail(new ResponseError('TOO_MANY_INTERIM_RESPONSES'));
      held = held.subarray(end);
    }
    this.#phase = 'final';
    this.#held = NOTHING;
    this.#start = held;
    return held;
  }

  #fail(error: ResponseError): undefined {
    this.#held = NOTHING;
    this.#socket.destroy(error);
  }
}

/**
 * Whether a response starts with an interim one; undefined if too little has arrived. A 101 counts as final, since it
 * ends HTTP on the connection.
 */
function startsInterim(head: Buffer): boolean | undefined {
  const start = head.toString('latin1', 0, STATUS_BYTES);
  if (start.length < STATUS_BYTES && /^HTTP\/1\.[01] 1/.test(start.padEnd(10, 'HTTP/1.1 1'.slice(start.length)))) {
    return undefined;
  }
  return /^HTTP\/1\.[01] 1(?!01)\d\d[ \r\n]/.test(start);
}

/** Returns where the head of a response ends; -1 if it has not arrived completely. */
function endOfHead(head: Buffer): number {
  const found = END_OF_HEAD.exec(head.toString('latin1'));
  return found ? found.index + found[0].length : -1;
}
