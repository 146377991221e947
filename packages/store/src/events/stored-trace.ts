/** The trace of an event as it is stored: 34 characters for both ids and the flags. */
import { SPAN_ID_BYTES, TRACE_ID_BYTES, type TraceContext } from '@posthorn/core';

const ID_BYTES = TRACE_ID_BYTES + SPAN_ID_BYTES;
/** The ids and the flags. */
const BYTES = ID_BYTES + 1;
/** Traces that share their bytes: allocating each alone would cost more. */
const SHARING = 160;
/** The last characters, by the flags: of the byte that follows the ids. */
const encodedFlags = Array.from({ length: 256 }, (_, flags) => Buffer.of(flags).toString('base64url'));

/** Where the next traces are read to, and how much of it is in use. */
let shared = Buffer.alloc(0);
let used = 0;

/** A trace in 34 characters. */
export function packTrace({ traceId, spanId, flags, packedIds }: TraceContext): string {
  return (packedIds ?? Buffer.from(traceId + spanId, 'hex').toString('base64url')) + encodedFlags[flags];
}

/** A trace that was stored. It is small, and makes the texts of its ids when asked. */
export class StoredTrace implements TraceContext {
  readonly bytes: Buffer;
  readonly at: number;

  /** Reads what `packTrace` wrote. While the trace is in memory, so are the 4 KB that it shares with others. */
  static read(text: string): StoredTrace {
    if (used === shared.length) {
      shared = Buffer.alloc(SHARING * BYTES);
      used = 0;
    }
    const at = used;
    used += BYTES;
    return new StoredTrace(shared, at, text);
  }

  /** The same for a trace that may be kept for long: it shares nothing. */
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
