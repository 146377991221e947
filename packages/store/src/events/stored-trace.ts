/** The trace of an event as it is stored: 34 characters for both ids and the flags. */
import type { TraceContext } from '@posthorn/core';

const TRACE_ID_BYTES = 16;
const ID_BYTES = 24;
const BYTES = ID_BYTES + 1;
/** The last characters, by the flags: of the byte that follows the ids. Nearly all are 0 or 1. */
const encodedFlags = Array.from({ length: 256 }, (_, flags) => Buffer.of(flags).toString('base64url'));

/** Where the next traces are read to. */
let room = Buffer.alloc(0);
/** Bytes in which traces of events are read one after the other: allocating them one by one would cost more. */
const ROOM_BYTES = 160 * BYTES;
let used = 0;

/** A trace in 34 characters. */
export function packTrace({ traceId, spanId, flags, packedIds }: TraceContext): string {
  return (packedIds ?? Buffer.from(traceId + spanId, 'hex').toString('base64url')) + encodedFlags[flags];
}

/** A trace that was stored. It is small, and makes the texts of its ids when asked. */
export class StoredTrace implements TraceContext {
  readonly bytes: Buffer;
  readonly at: number;

  /** Reads what `packTrace` wrote. While the trace is in memory, so are some that were read at the same time. */
  static read(text: string): StoredTrace {
    if (used + BYTES > room.length) [room, used] = [Buffer.alloc(ROOM_BYTES), 0];
    const at = used;
    used += BYTES;
    return new StoredTrace(room, at, text);
  }

  /** The same for a trace that may be kept for long. */
  static readToKeep(text: string): StoredTrace {
    return new StoredTrace(Buffer.alloc(BYTES), 0, text);
  }

  private constructor(bytes: Buffer, at: number, text: string) {
    bytes.write(text, at, BYTES, 'base64url');
    this.bytes = bytes;
    this.at = at;
  }

  get traceId(): string {
    return this.bytes.toString('hex', this.at, this.at + TRACE_ID_BYTES);
  }
  get spanId(): string {
    return this.bytes.toString('hex', this.at + TRACE_ID_BYTES, this.at + ID_BYTES);
  }
  get flags(): number {
    return this.bytes[this.at + ID_BYTES] ?? 0;
  }
}
