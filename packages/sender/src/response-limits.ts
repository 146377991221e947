/** The limits of a response: how much of it is read, and how many interim responses (1xx) may come before it. */
import type { Socket } from 'node:net';
import { MAX_RESPONSE_EXCERPT_BYTES } from '@posthorn/core';
import { ResponseError } from './result.ts';

/** Everything up to the end of the final response's headers, interim responses included. */
export const MAX_HEAD_BYTES = 32 * 1024;
/** The final response's headers alone. */
export const MAX_HEADERS_BYTES = 16 * 1024;
export const MAX_INTERIM_RESPONSES = 16;
/** How much of a body is read, and for how long, so that its connection can be used again. */
export const MAX_BODY_BYTES = MAX_RESPONSE_EXCERPT_BYTES;
export const MAX_BODY_MS = 250;

/** Is called once, when all that has arrived of a response was parsed and the response is not complete. */
export interface Unfinished {
  onUnfinished(): void;
}

export type ResponseLimits = ReturnType<typeof limitResponses>;

const NOTHING = Buffer.alloc(0);
const END_OF_HEAD = '\r\n\r\n';
/** Enough bytes to distinguish an interim response from a final one. */
const STATUS_BYTES = 'HTTP/1.1 100'.length;
const STATUS_LINE = /^HTTP\/1\.[01] ([2-9]\d\d)(?: [^\r\n]*)?\r?\n/;
const LF = 10;

/**
 * Puts the limits on a socket that undici reads from. Interim responses are dropped here, since undici fails a request at an unrequested
 * 100, which HTTP allows (RFC 9110, 15.2). A response that exceeds a limit destroys the socket. So do bytes that arrive while no
 * request is in flight; `onUnrequested` is called then.
 */
export function limitResponses(socket: Socket, onUnrequested: () => void) {
  const read = socket.read.bind(socket);
  let phase: 'idle' | 'interim' | 'final' = 'idle';
  let received = 0;
  let allowed = 0;
  let interim = 0;
  let held: Buffer = NOTHING;
  /** How the final response begins, at least up to the end of its status line. */
  let start: Buffer = NOTHING;
  let rest: Unfinished | undefined;

  const fail = (error: ResponseError) => {
    held = NOTHING;
    socket.destroy(error);
    return undefined;
  };
  /** Returns what undici may parse of what has arrived, or undefined after a failure. */
  const accept = (chunk: Buffer): Buffer | undefined => {
    if (phase === 'idle') {
      onUnrequested();
      return fail(new ResponseError('UNREQUESTED_RESPONSE'));
    }
    if (received > allowed) return fail(new ResponseError('RESPONSE_TOO_LARGE'));
    received += chunk.length;
    if (phase === 'final') {
      if (!start.includes(LF)) start = Buffer.concat([start, chunk]);
      return chunk;
    }
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    for (;;) {
      const isInterim = startsInterim(held);
      if (isInterim === undefined) return NOTHING;
      if (!isInterim) break;
      const end = held.indexOf(END_OF_HEAD);
      if (end === -1) return NOTHING;
      interim += 1;
      if (interim > MAX_INTERIM_RESPONSES) return fail(new ResponseError('TOO_MANY_INTERIM_RESPONSES'));
      held = held.subarray(end + END_OF_HEAD.length);
    }
    phase = 'final';
    start = held;
    held = NOTHING;
    return start;
  };

  socket.read = (size?: number) => {
    for (;;) {
      const chunk = read(size) as Buffer | null;
      if (chunk === null) {
        rest?.onUnfinished();
        rest = undefined;
        return null;
      }
      const accepted = accept(chunk);
      if (accepted === undefined) return null;
      if (accepted.length > 0) return accepted;
    }
  };
  return {
    /** A request is being written: bytes that arrive from now on are its response. */
    begin(): void {
      phase = 'interim';
      allowed = MAX_HEAD_BYTES;
    },
    /**
     * The final status has arrived: of what follows, `MAX_BODY_BYTES` are read. `unfinished` is called if the rest of
     * the response is not there yet.
     */
    statusSeen(unfinished: Unfinished): void {
      allowed = received + MAX_BODY_BYTES;
      rest = unfinished;
    },
    /** The response is complete: bytes that arrive from now on were not requested. */
    end(): void {
      phase = 'idle';
      start = NOTHING;
      rest = undefined;
      received = 0;
      interim = 0;
    },
    /** Returns the status of the current response once its status line has arrived, whatever follows it; 0 before. */
    statusCode: () => Number(STATUS_LINE.exec(start.toString('latin1'))?.[1] ?? 0),
    /** Returns how many bytes of the current response have arrived. */
    received: () => received,
  };
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
  return /^HTTP\/1\.[01] 1(?!01)\d\d/.test(start);
}
